package main

// deniedTables selects the tables that pg_dump dumps and the user may not read.
const deniedTables = `
SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE c.oid >= 16384 AND relkind IN ('r', 'p', 'S') AND relpersistence <> 't' AND nspname !~ '^pg_'
  AND NOT has_table_privilege(c.oid, 'SELECT')
  AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`

// extensionRows selects the tables of extensions that have rows, and that the extension does not declare as
// configuration.
const extensionRows = `
SELECT c.oid::regclass FROM pg_depend d JOIN pg_class c ON c.oid = d.objid JOIN pg_extension e ON e.oid = d.refobjid
WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass AND relkind = 'r'
  AND NOT c.oid = ANY(coalesce(extconfig, '{}')) AND pg_relation_size(c.oid) > 0`

// fixedSettings selects settings of the role or the database that only a superuser may override.
const fixedSettings = `
SELECT name FROM pg_settings WHERE context LIKE 'superuser%' AND source IN ('database', 'user', 'database user')
  AND name !~ '^(log|track|auto_explain)_' AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)`

// heldLocks selects tables on which a session holds a lock for which pg_dump must wait.
const heldLocks = `
SELECT format('%s, which session %s (%s) holds', relation::regclass, pid, application_name)
FROM pg_locks JOIN pg_stat_activity USING (pid) JOIN pg_database d ON d.oid = database
WHERE mode = 'AccessExclusiveLock' AND granted AND relation >= 16384 AND d.datname = current_database()`

// selectRoles selects the roles that the dump names, whether they own an object, and whether they are superusers. The
// role that initdb made is on each server, perhaps under another name, and is not in pg_shdepend.
const selectRoles = `
SELECT rolname, bool_or(owner), rolsuper FROM (
  SELECT refobjid, deptype = 'o' AND dbid <> 0 FROM pg_shdepend JOIN pg_database d ON datname = current_database()
  WHERE refclassid = 'pg_authid'::regclass AND (dbid = d.oid OR classid = 'pg_database'::regclass AND objid = d.oid)
  UNION ALL SELECT setrole, false FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
  WHERE datname = current_database()
) named (role, owner) JOIN pg_roles r ON r.oid = role WHERE role >= 16384 GROUP BY rolname, rolsuper ORDER BY rolname`

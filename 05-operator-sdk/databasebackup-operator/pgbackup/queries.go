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

// toolSessions selects the sessions of pg_dump in this run: the table for whose lock each waits, and the session that
// holds it.
const toolSessions = `
SELECT coalesce(l.relation::regclass::text, ''), coalesce(b.pid::text, 'unknown'),
  coalesce(nullif(b.application_name, ''), 'unnamed')
FROM pg_stat_activity a LEFT JOIN pg_locks l ON l.pid = a.pid AND NOT l.granted AND l.relation IS NOT NULL
LEFT JOIN pg_stat_activity b ON b.pid = ANY(pg_blocking_pids(a.pid))
WHERE a.application_name = $1 ORDER BY 1 DESC`

// selectRoles selects the roles that the dump names. The role that initdb made is on each server, perhaps under another
// name, and is never in pg_shdepend.
const selectRoles = `
SELECT DISTINCT pg_get_userbyid(refobjid) FROM pg_shdepend JOIN pg_database d ON datname = current_database()
WHERE refclassid = 'pg_authid'::regclass AND refobjid >= 16384
  AND (dbid = d.oid OR classid = 'pg_database'::regclass AND objid = d.oid)
UNION SELECT pg_get_userbyid(setrole) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
WHERE setrole >= 16384 AND datname = current_database() ORDER BY 1`

// selectOwners selects the objects that have an owner, as ALTER names them, the owner, and whether that is a superuser.
// Left out are objects that belong to an extension, and those whose owner follows another object: types of tables and of
// arrays, and sequences of columns.
const selectOwners = `
SELECT CASE o.type WHEN 'statistics object' THEN 'statistics' ELSE o.type END || ' ' || o.identity, rolname, rolsuper
FROM (
  SELECT 'pg_class'::regclass AS class, oid, relowner AS owner FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND relpersistence <> 't' AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
      AND objid = pg_class.oid AND refclassid = 'pg_class'::regclass AND deptype IN ('a', 'i') AND relkind = 'S')
  UNION ALL SELECT 'pg_type'::regclass, oid, typowner FROM pg_type t
    WHERE (typrelid = 0 OR (SELECT relkind FROM pg_class WHERE oid = typrelid) = 'c') AND typtype <> 'm'
      AND NOT EXISTS (SELECT FROM pg_type element WHERE element.typarray = t.oid)
  UNION ALL SELECT 'pg_proc'::regclass, oid, proowner FROM pg_proc
  UNION ALL SELECT 'pg_namespace'::regclass, oid, nspowner FROM pg_namespace WHERE nspname !~ '^pg_'
  UNION ALL SELECT 'pg_operator'::regclass, oid, oprowner FROM pg_operator
  UNION ALL SELECT 'pg_opclass'::regclass, oid, opcowner FROM pg_opclass
  UNION ALL SELECT 'pg_opfamily'::regclass, oid, opfowner FROM pg_opfamily
  UNION ALL SELECT 'pg_collation'::regclass, oid, collowner FROM pg_collation
  UNION ALL SELECT 'pg_conversion'::regclass, oid, conowner FROM pg_conversion
  UNION ALL SELECT 'pg_ts_config'::regclass, oid, cfgowner FROM pg_ts_config
  UNION ALL SELECT 'pg_ts_dict'::regclass, oid, dictowner FROM pg_ts_dict
  UNION ALL SELECT 'pg_statistic_ext'::regclass, oid, stxowner FROM pg_statistic_ext
  UNION ALL SELECT 'pg_language'::regclass, oid, lanowner FROM pg_language
  UNION ALL SELECT 'pg_foreign_data_wrapper'::regclass, oid, fdwowner FROM pg_foreign_data_wrapper
  UNION ALL SELECT 'pg_foreign_server'::regclass, oid, srvowner FROM pg_foreign_server
  UNION ALL SELECT 'pg_publication'::regclass, oid, pubowner FROM pg_publication
  UNION ALL SELECT 'pg_largeobject'::regclass, oid, lomowner FROM pg_largeobject_metadata
) objects JOIN pg_roles r ON r.oid = owner, pg_identify_object(class, objects.oid, 0) o
WHERE (objects.oid >= 16384 OR class = 'pg_largeobject'::regclass OR class = 'pg_namespace'::regclass AND o.identity = 'public')
  AND o.identity IS NOT NULL AND rolname <> 'pg_database_owner'
  AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = class AND objid = objects.oid AND deptype = 'e')
ORDER BY class, objects.oid`

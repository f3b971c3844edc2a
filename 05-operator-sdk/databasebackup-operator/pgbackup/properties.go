package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// property is a statement that gives a database its owner, a grant, a setting, its connection limit or its comment. The
// name of the database belongs between Before and After, so a database with another name can get the property.
type property struct {
	As     string `json:"as,omitempty"` // the role that granted, when it is not the owner
	Before string `json:"before"`
	After  string `json:"after"`
}

// selectProperties selects the properties of the database d, in the order in which the statements must run. Settings
// that are lists of names are split, because SET reads a quoted list as one name. No part of a value runs as SQL,
// because owners of databases choose the values. The marker of a restore is not a property.
const selectProperties = `
SELECT json_agg(json_build_object('as', grantor, 'before', before, 'after', after) ORDER BY place, number, before, after) FROM (
  SELECT 1 AS place, 0 AS number, '' AS grantor, 'ALTER DATABASE ' AS before,
    ' OWNER TO ' || quote_ident(pg_get_userbyid(d.datdba)) AS after
  UNION ALL SELECT 2, 0, '', 'REVOKE ' || p || ' ON DATABASE ', ' FROM ' || quote_ident(pg_get_userbyid(d.datdba))
  FROM unnest(ARRAY['CREATE', 'TEMPORARY', 'CONNECT']) p
  WHERE d.datacl IS NOT NULL AND p NOT IN (SELECT privilege_type FROM aclexplode(d.datacl) WHERE grantee = d.datdba)
  UNION ALL SELECT 3, min(number), CASE grantor WHEN d.datdba THEN '' ELSE pg_get_userbyid(grantor)::text END,
    'GRANT ' || string_agg(privilege_type, ', ') || ' ON DATABASE ',
    ' TO ' || CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END ||
    CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
  FROM aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) WITH ORDINALITY
    acl (grantor, grantee, privilege_type, is_grantable, number)
  WHERE grantee <> d.datdba GROUP BY grantor, grantee, is_grantable
  UNION ALL SELECT 4, 0, '', CASE setrole WHEN 0 THEN 'ALTER DATABASE '
      ELSE 'ALTER ROLE ' || quote_ident(pg_get_userbyid(setrole)) || ' IN DATABASE ' END,
    ' SET ' || quote_ident(name) || ' TO ' ||
    CASE WHEN lower(name) IN ('search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries',
        'shared_preload_libraries', 'unix_socket_directories')
      THEN (SELECT string_agg(quote_literal(coalesce(replace(m[1], '""', '"'), m[2])), ', ')
        FROM regexp_matches(value, '"((?:[^"]|"")*)"|([^", ]+)', 'g') m)
      ELSE quote_literal(value) END
  FROM pg_db_role_setting, unnest(setconfig) c,
    LATERAL (SELECT split_part(c, '=', 1) AS name, substr(c, strpos(c, '=') + 1) AS value) s
  WHERE setdatabase = d.oid AND c !~ '^application_name=(restored|replaced) '
  UNION ALL SELECT 5, 0, '', 'ALTER DATABASE ', ' CONNECTION LIMIT ' || d.datconnlimit WHERE d.datconnlimit <> -1
  UNION ALL SELECT 6, 0, '', 'COMMENT ON DATABASE ', ' IS ' || quote_literal(comment)
  FROM shobj_description(d.oid, 'pg_database') comment WHERE comment IS NOT NULL
) properties`

// propertiesSum selects a short checksum of the properties of the database d.
const propertiesSum = "left(md5((" + selectProperties + ")::text), 6)"

// applyProperties gives the current database the properties in a setting. It prints those that the server refuses, such
// as a grant to a role that does not exist, and then the checksum of the properties that the database has.
const applyProperties = `
DO $$
DECLARE
  p json;
  number int := 0;
  refused json[] := '{}';
BEGIN
  FOR p IN SELECT json_array_elements(current_setting('pgbackup.properties')::json) LOOP
    BEGIN
      EXECUTE 'SET LOCAL ROLE ' || coalesce(quote_ident(p->>'as'), 'NONE');
      EXECUTE (p->>'before') || quote_ident(current_database()) || (p->>'after');
    EXCEPTION WHEN OTHERS THEN
      refused := array_append(refused, json_build_object('number', number, 'message', SQLERRM));
    END;
    number := number + 1;
  END LOOP;
  PERFORM set_config('pgbackup.refused', array_to_json(refused)::text, false);
END $$;
SELECT current_setting('pgbackup.refused');
SELECT ` + propertiesSum + ` FROM pg_database d WHERE datname = current_database();
`

// restoreProperties gives a database the properties. It works in that database, because the text of its properties has
// its encoding. It returns the statements that the server refused, and the checksum of the properties.
func (p *program) restoreProperties(
	ctx context.Context, database, encoding string, properties []property,
) (refused []string, sum string, err error) {
	text, err := json.Marshal(append([]property{}, properties...)) // an empty list, not null
	if err != nil {
		return nil, "", fmt.Errorf("encode the properties: %w", err)
	}
	in := p.target.withEncoding(textEncoding(encoding))
	out, err := in.query(ctx, database, "SET pgbackup.properties ="+literal(string(text))+";"+applyProperties)
	if err != nil {
		return nil, "", classify(err, "restore the properties of the database", ReasonRestoreFailed, workPatterns)
	}
	answer, sum, _ := strings.Cut(out, "\n")
	var found []struct {
		Number  int
		Message string
	}
	if err := json.Unmarshal(validJSON([]string{answer}), &found); err != nil {
		return nil, "", fmt.Errorf("read the properties that were refused: %w", err)
	}
	for _, f := range found {
		refused = append(refused, fmt.Sprintf("%s (%s)", properties[f.Number].shown(p.config.Database), f.Message))
	}
	return refused, sum, nil
}

// shown is the statement in a warning: without the value of a setting or a comment.
func (p property) shown(database string) string {
	text, _, cut := strings.Cut(p.Before+`"`+database+`"`+p.After, "'")
	if cut {
		text += "…"
	}
	return oneLine(text)
}

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maintenance is the database to which a restore connects for creating and renaming others.
const maintenance = "postgres"

// sessionOptions are the settings that our sessions and those of the tools need, whatever the role, the database or the
// server sets: settings of the client have precedence. Each PostgreSQL since 14 knows them.
const sessionOptions = "-c default_transaction_read_only=off -c default_transaction_deferrable=off -c statement_timeout=0 " +
	"-c lock_timeout=0 -c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0 -c quote_all_identifiers=off " +
	"-c row_security=off -c search_path= -c role=none -c default_tablespace= -c temp_tablespaces= " +
	"-c default_table_access_method=heap"

// applicationName is the name of the sessions of this program and its tools.
const applicationName = "pgbackup"

// session is a connection to a database.
type session struct{ *pgx.Conn }

// connect opens a session of the user of the settings. It tries again while the server may still be starting.
func (p *program) connect(ctx context.Context, database string) (*session, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=%s", connectionValue(p.config.Host),
		p.config.Port, connectionValue(p.config.User), connectionValue(database)))
	if err != nil {
		return nil, because(err, ReasonTLSFailed, "PGSSLMODE or PGSSLROOTCERT cannot be used")
	}
	config.ConnectTimeout, config.DefaultQueryExecMode = 10*time.Second, pgx.QueryExecModeExec
	config.RuntimeParams["application_name"], config.RuntimeParams["options"] = applicationName, sessionOptions
	networkOpen := false // with TLS, if it is required
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		networkOpen = true
		return conn, nil
	}
	backOff := backoff.NewExponentialBackOff()
	backOff.InitialInterval, backOff.MaxInterval = 50*time.Millisecond, 2*time.Second
	return backoff.Retry(ctx, func() (*session, error) {
		s, err := dial(ctx, config)
		switch fault := faultOf(err); {
		case err == nil, fault.reason == ReasonTargetNotReady:
			return s, err
		case fault.reason == ReasonFailed && !networkOpen:
			err = because(err, ReasonTLSFailed)
		case fault.reason == ReasonFailed && sqlState(err) == "":
			err = because(err, ReasonAuthenticationFailed) // such as a password in clear text
		}
		return nil, backoff.Permanent(err)
	}, backoff.WithBackOff(backOff), backoff.WithMaxElapsedTime(max(time.Second, min(p.config.wait(), maxWait))))
}

// dial opens a session. It sets the encoding, where PostgreSQL can convert it, and the limit that PostgreSQL 17 brought.
func dial(ctx context.Context, config *pgx.ConnConfig) (*session, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &session{conn}
	if err = s.do(ctx, "SET transaction_timeout = 0"); sqlState(err) == "42704" { // PostgreSQL does not know it
		err = nil
	}
	if encoding := s.parameter("server_encoding"); err == nil && encoding != "SQL_ASCII" && encoding != "MULE_INTERNAL" {
		err = s.do(ctx, "SET client_encoding = 'UTF8'")
	}
	if err != nil {
		s.close()
	}
	return s, err
}

// parameter is a parameter that the server reported.
func (s *session) parameter(name string) string { return s.PgConn().ParameterStatus(name) }

// column returns the first column of the rows of a statement.
func (s *session) column(ctx context.Context, sql string, params ...any) ([]string, error) {
	rows, _ := s.Query(ctx, sql, params...) // the error is that of the rows, too
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// is returns whether a statement returns true.
func (s *session) is(ctx context.Context, sql string, params ...any) (yes bool, err error) {
	err = s.QueryRow(ctx, sql, params...).Scan(&yes)
	return yes, err
}

// do runs statements, until one fails.
func (s *session) do(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := s.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = s.Close(ctx)
}

// quote makes a name an identifier of SQL.
func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// sqlState is the SQLSTATE of an error, or empty.
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// states are the reasons for SQLSTATEs. No text of the server is read, because it comes in the server's language.
var states = map[string]Reason{
	"28P01": ReasonAuthenticationFailed, "28000": ReasonAuthenticationFailed, "3D000": ReasonDatabaseNotFound,
	"42501": ReasonPermissionDenied, "55000": ReasonPermissionDenied, "25006": ReasonPermissionDenied,
	"53300": ReasonTargetNotReady, "57P01": ReasonTargetNotReady, "57P02": ReasonTargetNotReady, "57P03": ReasonTargetNotReady,
}

// serverFault gives an error of a session its reason, by its SQLSTATE or the type of the error.
func serverFault(err error) *fault {
	state := sqlState(err)
	_, network := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	f := &fault{reason: ReasonFailed, cause: err}
	switch reason, known := states[state]; {
	case known:
		f.reason = reason
	case isTLS(err):
		f.reason = ReasonTLSFailed
	case network, name, errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.reason = ReasonTargetNotReady
	}
	if state != "" {
		f.details = []string{"SQLSTATE " + state}
	}
	return f
}

// isTLS reports whether an error is about a certificate or TLS itself.
func isTLS(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	return verification || authority || record || alert
}

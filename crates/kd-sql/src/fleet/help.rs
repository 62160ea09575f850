//! What to type when a server refuses, by its code, and when it cannot be reached.

use super::address::Store;
use postgres::error::SqlState;
use std::io::ErrorKind;

/// Help for each code. `{user}`, `{database}` and `{schema}` are filled in.
pub(super) const CODES: &[(&SqlState, &str)] = &[
    (
        &SqlState::INSUFFICIENT_PRIVILEGE,
        "as the owner of the database {database}, type: GRANT USAGE, CREATE ON SCHEMA {schema} TO {user}; if another user has created the tables, also: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {user};",
    ),
    (
        &SqlState::INVALID_SCHEMA_NAME,
        "as the owner of the database {database}, type: CREATE SCHEMA AUTHORIZATION {user};",
    ),
    (&SqlState::INVALID_PASSWORD, PASSWORD),
    (
        &SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        "as an administrator of the server, type: CREATE ROLE {user} LOGIN PASSWORD '…'; and let this machine in with a line of pg_hba.conf: hostssl {database} {user} ADDRESS scram-sha-256",
    ),
    (
        &SqlState::INVALID_CATALOG_NAME,
        "as an administrator of the server, type: CREATE DATABASE {database} OWNER {user};",
    ),
    (
        &SqlState::TOO_MANY_CONNECTIONS,
        "each worker has 2 connections: raise max_connections in postgresql.conf and restart the server, or start fewer workers",
    ),
    (
        &SqlState::READ_ONLY_SQL_TRANSACTION,
        "the server is a standby, or set to read only: put the host of the primary into --store or KD_BATCH_STORE",
    ),
    (
        &SqlState::CANNOT_CONNECT_NOW,
        "the server starts or stops: run the same command again in a minute",
    ),
    (&SqlState::UNDEFINED_FUNCTION, OLD),
    (&SqlState::UNDEFINED_OBJECT, OLD),
    (
        &SqlState::UNDEFINED_TABLE,
        "a table of `kd` is missing: restore it from a backup; or give up all batches there and type: DROP TABLE kd_store; and drop the other tables that begin with kd_",
    ),
];

const PASSWORD: &str = "put the password into KD_BATCH_STORE: postgresql://{user}:PASSWORD@HOST/{database}; to set a new one, type as an administrator: ALTER ROLE {user} PASSWORD '…';";
const OLD: &str =
    "PostgreSQL 15 or newer is needed; to see the version, type: psql -c 'SELECT version()'";
const REACHED: &str = "check the host and port of the address, and that no firewall is between: pg_isready -h HOST -p 5432";
const REFUSED: &str = "start the server there; to be reached from other machines it needs listen_addresses = '*' in postgresql.conf: pg_isready -h HOST -p 5432";

/// Help for each way in which a server cannot be reached.
pub(super) const KINDS: &[(ErrorKind, &str)] = &[
    (ErrorKind::ConnectionRefused, REFUSED),
    (ErrorKind::TimedOut, REACHED),
    (ErrorKind::HostUnreachable, REACHED),
    (ErrorKind::NetworkUnreachable, REACHED),
    (ErrorKind::ConnectionReset, REACHED),
    (
        ErrorKind::NotFound,
        "no server has its socket there: start it, or name its folder in the address: postgresql://{user}@/{database}?host=/run/postgresql",
    ),
    (
        ErrorKind::PermissionDenied,
        "this user may not use the socket of the server: name a host in the address, postgresql://{user}@localhost/{database}",
    ),
];

/// Returns what to type for an error of the client or the server, if that is known.
pub(super) fn of(error: &postgres::Error, store: &Store) -> Option<String> {
    let help = match error.as_db_error() {
        Some(db) => {
            let row = CODES.iter().find(|(code, _)| *code == db.code());
            row.map(|(_, help)| *help)
        }
        None => of_cause(error),
    }?;
    let message = error.as_db_error().map(postgres::error::DbError::message);
    Some(filled(help, store, message))
}

fn of_cause(error: &postgres::Error) -> Option<&'static str> {
    let cause = std::error::Error::source(error);
    let Some(io) = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>()) else {
        // The client has no kinds of errors, only texts.
        let text = cause.map_or_else(|| error.to_string(), ToString::to_string);
        return text.contains("password missing").then_some(PASSWORD);
    };
    let row = KINDS.iter().find(|(kind, _)| *kind == io.kind());
    let is_name = io.to_string().contains("lookup address");
    row.map(|(_, help)| *help)
        .or(is_name.then_some("check the name of the host in the address"))
}

/// Fills the names in.
pub(super) fn filled(help: &str, store: &Store, message: Option<&str>) -> String {
    let (user, database) = store.names();
    let schema = message.and_then(|text| text.rsplit_once("for schema "));
    let schema = schema.map_or("public", |(_, schema)| schema.trim());
    let user = user.as_deref().unwrap_or("USER");
    help.replace("{user}", &identifier(user))
        .replace(
            "{database}",
            &identifier(database.as_deref().unwrap_or(user)),
        )
        .replace("{schema}", &identifier(schema))
}

/// Returns a name as SQL takes it.
fn identifier(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match !name.is_empty() && name.chars().all(is_plain) || name == "USER" {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_kind_says_what_to_type_with_the_names_of_the_address() {
        let store = Store::parse("postgresql://ada:pass-word@db.example.org/Council%20one");
        let store = store.unwrap();
        let codes = CODES
            .iter()
            .map(|(code, help)| (code.code().to_owned(), *help));
        let kinds = KINDS
            .iter()
            .map(|(kind, help)| (format!("{kind:?}"), *help));
        let marks = [
            "type: ",
            "postgresql.conf",
            "KD_BATCH_STORE",
            "run the same command",
            "pg_isready",
            "postgresql://",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for (name, help) in codes.chain(kinds) {
            assert!(
                marks.iter().any(|mark| help.contains(mark)),
                "{name}: {help}"
            );
            let text = filled(help, &store, Some("permission denied for schema council"));
            assert!(!text.contains(['{', '}']), "{name}: {text}");
            assert!(!text.contains("pass-word"), "{name}: {text}");
            let named = [("{user}", "ada"), ("{database}", "\"Council one\"")];
            for (mark, word) in named {
                assert_eq!(help.contains(mark), text.contains(word), "{name}: {text}");
            }
            assert!(seen.insert(name.clone()), "twice: {name}");
        }
        let (_, grant) = CODES[0];
        let text = filled(grant, &store, Some("permission denied for schema council"));
        assert!(
            text.contains("GRANT USAGE, CREATE ON SCHEMA council TO ada;"),
            "{text}"
        );
        let text = filled(grant, &store, Some("permission denied for table kd_jobs"));
        assert!(text.contains("ON SCHEMA public TO ada;"), "{text}");
        let nobody = Store::parse("postgresql://h").unwrap();
        assert!(filled(grant, &nobody, None).contains("TO USER;"));
    }
}

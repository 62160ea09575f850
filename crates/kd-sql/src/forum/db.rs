//! A common interface to the two databases: SQL text and values in, rows out. Everything above it is written once.
//!
//! Parameters are written `$1`, `$2`, …, as in PostgreSQL. Statements are prepared once per connection. Calls block; do
//! not call PostgreSQL from a thread that runs an asynchronous task.

use super::error::ForumError;
use kd_core::clean::clean_text;
use postgres::types::{IsNull, ToSql, Type};
use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time limit of a writer that waits for others.
const BUSY: Duration = Duration::from_secs(20);
/// Prepared statements kept per connection: more than this crate has.
const STATEMENTS: usize = 128;

/// Maximum length of a text in a row, far above the longest post.
const TEXT_BYTES_MAX: i32 = 32 << 20;
/// Maximum text of one result.
const ROWS_BYTES_MAX: usize = 64 << 20;
/// Options that apply to every database file. They disable triggers, views, functions in the schema, and direct writes to
/// the schema and to pages.
const CONFIG: [(DbConfig, bool); 4] = [
    (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
    (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
];

/// A value in a row or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    /// A value of a type that no column of kd has, by the name of the type. Only in rows.
    Other(String),
}

/// One row of a result. Its getters fail for a missing column, a value of another type, and NULL where none belongs.
#[derive(Debug)]
pub(super) struct Row {
    columns: Arc<[String]>,
    values: Vec<Value>,
}

impl Row {
    fn bytes(&self) -> usize {
        let text = |value: &Value| match value {
            Value::Text(text) => text.len(),
            _ => 0,
        };
        self.values.iter().map(text).sum()
    }

    /// Returns a value that is not NULL, converted by `read`.
    fn get<'r, T>(
        &'r self,
        at: usize,
        wanted: &'static str,
        read: impl FnOnce(&'r Value) -> Option<T>,
    ) -> Result<T, ForumError> {
        let value = self.values.get(at);
        value
            .and_then(read)
            .ok_or_else(|| self.wrong(at, wanted, value.map_or("nothing", Value::kind)))
    }

    /// Returns a value converted by `read`; `None` for NULL.
    fn maybe<'r, T>(
        &'r self,
        at: usize,
        wanted: &'static str,
        read: impl FnOnce(&'r Value) -> Option<T>,
    ) -> Result<Option<T>, ForumError> {
        match self.values.get(at) {
            Some(Value::Null) => Ok(None),
            _ => self.get(at, wanted, read).map(Some),
        }
    }

    fn wrong(&self, at: usize, wanted: &'static str, found: impl Into<String>) -> ForumError {
        ForumError::Column {
            column: match self.columns.get(at) {
                Some(name) => name.clone(),
                None => format!("number {}", at + 1),
            },
            wanted,
            found: found.into(),
        }
    }

    /// Returns an integer.
    pub(super) fn int(&self, at: usize) -> Result<i64, ForumError> {
        self.get(at, INT, Value::as_int)
    }

    pub(super) fn maybe_int(&self, at: usize) -> Result<Option<i64>, ForumError> {
        self.maybe(at, INT, Value::as_int)
    }

    pub(super) fn real(&self, at: usize) -> Result<f64, ForumError> {
        self.get(at, "a number", |value| match value {
            Value::Real(n) => Some(*n),
            Value::Int(n) => Some(*n as f64),
            _ => None,
        })
    }

    /// Returns text as stored. It must not reach a terminal.
    pub(super) fn raw(&self, at: usize) -> Result<String, ForumError> {
        self.get(at, TEXT, Value::as_text).map(str::to_owned)
    }

    /// Returns text. No character in it can control a terminal, even if another program wrote it.
    pub(super) fn text(&self, at: usize) -> Result<String, ForumError> {
        let text = self.get(at, TEXT, Value::as_text)?;
        Ok(clean_text(text).into_owned())
    }

    pub(super) fn maybe_text(&self, at: usize) -> Result<Option<String>, ForumError> {
        let text = self.maybe(at, TEXT, Value::as_text)?;
        Ok(text.map(|text| clean_text(text).into_owned()))
    }

    /// Returns the value that a word stands for.
    pub(super) fn word<T>(
        &self,
        at: usize,
        wanted: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ForumError> {
        let word = self.line(at)?;
        parse(&word).ok_or_else(|| {
            let begin: String = word.chars().take(WORD_CHARS_SHOWN).collect();
            self.wrong(at, wanted, format!("`{begin}`"))
        })
    }

    /// Returns a text of one line: a name, a title.
    pub(super) fn line(&self, at: usize) -> Result<String, ForumError> {
        Ok(one_line(&self.text(at)?))
    }

    pub(super) fn maybe_line(&self, at: usize) -> Result<Option<String>, ForumError> {
        Ok(self.maybe_text(at)?.map(|text| one_line(&text)))
    }

    /// Parses a JSON text. The texts in it are cleaned too.
    pub(super) fn json<T: DeserializeOwned>(&self, at: usize) -> Result<T, ForumError> {
        parsed(&self.text(at)?)
            .map_err(|why| self.wrong(at, "JSON", format!("text that kd cannot read: {why}")))
    }

    /// Parses a JSON text; `None` for a text of another shape, which a newer `kd` may have written.
    pub(super) fn maybe_json<T: DeserializeOwned>(
        &self,
        at: usize,
    ) -> Result<Option<T>, ForumError> {
        Ok(parsed(&self.text(at)?).ok())
    }

    pub(super) fn time(&self, at: usize) -> Result<jiff::Timestamp, ForumError> {
        let time = self.maybe_time(at)?;
        time.ok_or_else(|| self.wrong(at, TIME, Value::Null.kind()))
    }

    pub(super) fn maybe_time(&self, at: usize) -> Result<Option<jiff::Timestamp>, ForumError> {
        let Some(us) = self.maybe(at, TIME, Value::as_int)? else {
            return Ok(None);
        };
        let time = jiff::Timestamp::from_microsecond(us);
        time.map(Some)
            .map_err(|_| self.wrong(at, TIME, format!("{us}, which is out of range")))
    }
}

/// Names of column types in errors.
const INT: &str = "an integer";
const TEXT: &str = "text";
const TIME: &str = "a time in microseconds";

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let mut value = serde_json::from_str(text)?;
    clean_json(&mut value);
    serde_json::from_value(value)
}

/// Maximum characters of an unknown word in an error.
const WORD_CHARS_SHOWN: usize = 40;

fn one_line(text: &str) -> String {
    text.replace(['\n', '\t'], " ")
}

/// Returns the integer in the first column; `None` without a row, or for NULL.
pub(super) fn first_int(row: Option<Row>) -> Result<Option<i64>, ForumError> {
    row.map_or(Ok(None), |row| row.maybe_int(0))
}

/// Returns the text in the first column; `None` without a row, or for NULL.
pub(super) fn first_text(row: Option<Row>) -> Result<Option<String>, ForumError> {
    row.map_or(Ok(None), |row| row.maybe_text(0))
}

/// Returns the number that the database gave to a new row.
pub(super) fn new_id(row: Option<Row>) -> Result<i64, ForumError> {
    row.ok_or_else(|| ForumError::Database("the database gave no number to a new row".to_owned()))?
        .int(0)
}

fn clean_json(value: &mut Json) {
    match value {
        Json::String(text) => {
            if let Cow::Owned(clean) = clean_text(text) {
                *text = clean;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(clean_json),
        Json::Object(fields) => {
            if fields
                .keys()
                .any(|key| matches!(clean_text(key), Cow::Owned(_)))
            {
                let all = std::mem::take(fields).into_iter();
                fields.extend(all.map(|(key, value)| (clean_text(&key).into_owned(), value)));
            }
            fields.values_mut().for_each(clean_json);
        }
        _ => {}
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Self {
        Self::Real(n)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        // PostgreSQL does not accept NUL characters; none of our texts needs one.
        Self::Text(text.replace('\0', "\u{fffd}"))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<jiff::Timestamp> for Value {
    fn from(at: jiff::Timestamp) -> Self {
        Self::Int(at.as_microsecond())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Builds a list of parameters of mixed types.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$($crate::forum::db::Value::from($value)),*] };
}
pub(super) use args;

/// A connection.
pub(super) struct Db {
    link: Link,
    /// The number of nested transactions; only the outermost is real.
    depth: u32,
}

/// Whether the path of a database may contain links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    Followed,
    Refused,
}

enum Link {
    Sqlite(rusqlite::Connection),
    Postgres {
        client: Box<postgres::Client>,
        ready: BTreeMap<String, postgres::Statement>,
    },
}

impl Db {
    /// Opens a file, creating it if it does not exist.
    pub(super) fn sqlite(path: &Path, links: Links) -> Result<Self, ForumError> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_NOFOLLOW, links == Links::Refused);
        super::journal::check_journal(path)?;
        let connection = rusqlite::Connection::open_with_flags(path, flags)?;
        for (what, on) in CONFIG {
            connection.set_db_config(what, on)?;
        }
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, TEXT_BYTES_MAX)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // The log is synced at checkpoints: a power failure can lose the last posts but never corrupt the file. A
        // killed process loses nothing.
        connection.execute_batch(
            "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;",
        )?;
        Ok(Self {
            link: Link::Sqlite(connection),
            depth: 0,
        })
    }

    /// Creates an empty in-memory database.
    pub(super) fn in_memory() -> Result<Self, ForumError> {
        Ok(Self {
            link: Link::Sqlite(rusqlite::Connection::open_in_memory()?),
            depth: 0,
        })
    }

    /// Connects to a server.
    pub(super) fn postgres(url: &str) -> Result<Self, ForumError> {
        let client = Box::new(crate::connect::connect(url, "kd forum", BUSY)?);
        Ok(Self {
            link: Link::Postgres {
                client,
                ready: BTreeMap::new(),
            },
            depth: 0,
        })
    }

    /// Returns whether it is SQLite.
    pub(super) fn is_sqlite(&self) -> bool {
        matches!(self.link, Link::Sqlite(_))
    }

    /// Returns the rows of a query, or of a change that returns some.
    pub(super) fn rows(&mut self, sql: &str, args: &[Value]) -> Result<Vec<Row>, ForumError> {
        match &mut self.link {
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(&numbered(sql))?;
                let columns: Arc<[String]> = statement
                    .column_names()
                    .into_iter()
                    .map(str::to_owned)
                    .collect();
                let mut found = statement.query(rusqlite::params_from_iter(args))?;
                let (mut rows, mut bytes) = (Vec::new(), 0);
                while let Some(row) = found.next()? {
                    let cells =
                        (0..columns.len()).map(|at| row.get_ref(at).map(Value::from_sqlite));
                    let row = Row {
                        columns: Arc::clone(&columns),
                        values: cells.collect::<Result<_, _>>()?,
                    };
                    bytes += row.bytes();
                    if bytes > ROWS_BYTES_MAX {
                        return Err(ForumError::Database(format!(
                            "more than {} MiB of text at once",
                            ROWS_BYTES_MAX >> 20
                        )));
                    }
                    rows.push(row);
                }
                Ok(rows)
            }
            Link::Postgres { client, ready } => {
                let statement = prepared(client, ready, sql)?;
                let args: Vec<&(dyn ToSql + Sync)> =
                    args.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
                let columns: Arc<[String]> = statement
                    .columns()
                    .iter()
                    .map(|column| column.name().to_owned())
                    .collect();
                client
                    .query(&statement, &args)?
                    .iter()
                    .map(|row| Value::row_of_postgres(row, &columns))
                    .collect()
            }
        }
    }

    /// Returns the first row, if there is one.
    pub(super) fn row(&mut self, sql: &str, args: &[Value]) -> Result<Option<Row>, ForumError> {
        Ok(self.rows(sql, args)?.into_iter().next())
    }

    /// Makes a change; returns the number of affected rows.
    pub(super) fn run(&mut self, sql: &str, args: &[Value]) -> Result<u64, ForumError> {
        match &mut self.link {
            Link::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(&numbered(sql))?;
                Ok(statement.execute(rusqlite::params_from_iter(args))? as u64)
            }
            Link::Postgres { client, ready } => {
                let statement = prepared(client, ready, sql)?;
                let args: Vec<&(dyn ToSql + Sync)> =
                    args.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
                Ok(client.execute(&statement, &args)?)
            }
        }
    }

    /// Runs several statements without parameters.
    pub(super) fn script(&mut self, sql: &str) -> Result<(), ForumError> {
        match &mut self.link {
            Link::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Link::Postgres { client, .. } => Ok(client.batch_execute(sql)?),
        }
    }

    /// Runs a transaction; nested calls become part of the outer one. SQLite takes its write lock at the start, so
    /// that rows that were read stay valid.
    pub(super) fn whole<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, ForumError>,
    ) -> Result<T, ForumError> {
        self.begin()?;
        let done = act(self);
        self.end(done)
    }

    /// Opens a transaction, or increases the nesting depth of the open one.
    pub(super) fn begin(&mut self) -> Result<(), ForumError> {
        if self.depth == 0 {
            self.script(if self.is_sqlite() {
                "BEGIN IMMEDIATE"
            } else {
                "BEGIN"
            })?;
        }
        self.depth += 1;
        Ok(())
    }

    /// Ends what [`Db::begin`] opened; an error inside rolls back everything.
    pub(super) fn end<T>(&mut self, done: Result<T, ForumError>) -> Result<T, ForumError> {
        self.depth -= 1;
        if self.depth > 0 {
            return done;
        }
        match done.and_then(|done| self.script("COMMIT").map(|()| done)) {
            Ok(done) => Ok(done),
            Err(error) => {
                // The first error is reported; a connection that cannot even roll back is lost anyway.
                let _ = self.script("ROLLBACK");
                Err(error)
            }
        }
    }
}

/// A call that takes or ends the lock of a forum, `$1`: an SQL expression. A server has one set of locks for all schemas of a database,
/// and forums of the same name in others are not the same.
macro_rules! locking {
    ($call:literal) => {
        concat!(
            $call,
            "($1 # (coalesce(hashtext(current_schema()::text), 0)::bigint << 8))"
        )
    };
}
pub(super) use locking;

/// Base of our PostgreSQL advisory locks, chosen to avoid collisions with other programs.
pub(super) const LOCK: i64 = 0x6b64_666f_7275_6d00;

/// Makes numbers visible in their order, so that a reader's mark cannot skip a late one. SQLite has only one writer; on
/// a server, the writers of one forum take turns.
pub(super) fn lock(db: &mut Db, forum: &str) -> Result<(), ForumError> {
    if !db.is_sqlite() {
        db.rows(
            concat!(
                "SELECT CAST(",
                locking!("pg_advisory_xact_lock"),
                " AS TEXT)"
            ),
            args![lock_number(forum, false)],
        )?;
    }
    Ok(())
}

/// Returns the number of a lock that processes share: the lock of a forum's writers, or of its leader. On a server,
/// the schema is added: see [`locking`].
pub(super) fn lock_number(forum: &str, leader: bool) -> i64 {
    let hash = forum.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The last bit separates a forum's two locks, and the hash separates them from the migration's.
    LOCK ^ ((hash >> 8) as i64 & !1) ^ i64::from(leader)
}

/// Converts `$1` to SQLite's numbered parameters. None of our SQL contains a `$` for anything else.
fn numbered(sql: &str) -> String {
    sql.replace('$', "?")
}

fn prepared(
    client: &mut postgres::Client,
    ready: &mut BTreeMap<String, postgres::Statement>,
    sql: &str,
) -> Result<postgres::Statement, ForumError> {
    if let Some(statement) = ready.get(sql) {
        return Ok(statement.clone());
    }
    let statement = client.prepare(sql)?;
    ready.insert(sql.to_owned(), statement.clone());
    Ok(statement)
}

impl Value {
    fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(n) => Some(*n),
            _ => None,
        }
    }

    fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Names its type, in errors.
    fn kind(&self) -> &str {
        match self {
            Self::Null => "NULL",
            Self::Int(_) => INT,
            Self::Real(_) => "a fraction",
            Self::Text(_) => TEXT,
            Self::Other(kind) => kind,
        }
    }

    fn from_sqlite(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Blob(_) => Self::Other("a blob".to_owned()),
            ValueRef::Integer(n) => Self::Int(n),
            ValueRef::Real(n) => Self::Real(n),
            ValueRef::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
        }
    }

    fn row_of_postgres(row: &postgres::Row, columns: &Arc<[String]>) -> Result<Row, ForumError> {
        let mut cells = Vec::with_capacity(row.len());
        for (at, column) in row.columns().iter().enumerate() {
            let cell = match *column.type_() {
                Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map(Self::Int),
                Type::INT4 => row
                    .try_get::<_, Option<i32>>(at)?
                    .map(|n| Self::Int(n.into())),
                Type::BOOL => row
                    .try_get::<_, Option<bool>>(at)?
                    .map(|b| Self::Int(b.into())),
                Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map(Self::Real),
                Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::UNKNOWN => {
                    row.try_get::<_, Option<String>>(at)?.map(Self::Text)
                }
                ref other => Some(Self::Other(other.name().to_owned())),
            };
            cells.push(cell.unwrap_or(Self::Null));
        }
        Ok(Row {
            columns: Arc::clone(columns),
            values: cells,
        })
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        use rusqlite::types::ToSqlOutput;
        Ok(match self {
            Self::Null | Self::Other(_) => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Int(n) => ToSqlOutput::Borrowed(ValueRef::Integer(*n)),
            Self::Real(n) => ToSqlOutput::Borrowed(ValueRef::Real(*n)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null | Self::Other(_) => Ok(IsNull::Yes),
            Self::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Self::Int(n) => n.to_sql(ty, out),
            Self::Real(n) => n.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::INT8 | Type::INT4 | Type::FLOAT8 | Type::TEXT | Type::VARCHAR
        )
    }

    postgres::types::to_sql_checked!();
}

//! The file: its rows with their line numbers, checked one by one, in chunks. It is never held whole.
//!
//! It knows nothing of the database; whether a student exists is found out later.

use std::{
    fmt,
    io::{self, BufRead, Read},
};

use csv::{ByteRecord, ReaderBuilder};
use domain::command::{InvalidBody, check_submission};

use crate::http::body::MAX_BODY;

/// The columns, in the order that is recommended; any order is taken.
pub const COLUMNS: [&str; 4] = ["task_id", "student", "submit_version", "content"];
/// The largest content in bytes: what the API takes.
const MAX_CONTENT: usize = MAX_BODY;
/// The longest row in bytes: many times what its content may have, so that whatever is longer can only be an open quotation
/// mark or no CSV at all, and is not gathered in memory.
const MAX_ROW: u64 = 16 * 1024 * 1024;
/// Rows of a chunk: as many as one set of the engine.
pub(super) const CHUNK_ROWS: usize = 64;
/// Bytes of content from which on a chunk is full.
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// Where a row stands and what its short columns hold, as they were read: for the list of rows that were not taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The line on which the row begins; the first of the file is 1.
    pub line: u64,
    /// The first three columns.
    pub cells: [String; 3],
}

impl Place {
    /// The column `task_id`.
    pub fn task_id(&self) -> &str {
        &self.cells[0]
    }

    /// The column `student`: the account's name.
    pub fn student(&self) -> &str {
        &self.cells[1]
    }
}

/// What a good row asks for, beside its [`Place`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// The version.
    pub submit_version: i32,
    /// What is handed in, exactly as it stands in the file.
    pub content: String,
}

/// A row of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Where it stands.
    pub place: Place,
    /// What it asks for, or what is wrong with it.
    pub work: Result<Work, InvalidRow>,
}

/// What is wrong with a row, as a sentence that says what to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRow {
    /// Too few or too many.
    #[error(
        "the row has {0} columns instead of 4; put a text that holds commas, quotation marks or line breaks in quotation marks"
    )]
    Columns(usize),
    /// Not UTF-8.
    #[error("{0} is not UTF-8; save the file as UTF-8")]
    NotUtf8(&'static str),
    /// No id.
    #[error("task_id must be a whole number from 1, such as 12")]
    TaskId,
    /// No version.
    #[error("submit_version must be a whole number from 1, such as 1")]
    Version,
    /// No name, or one that no account can have.
    #[error("student must be the name of the student's account, without control characters")]
    StudentName,
    /// Nobody of this name, or somebody who is no student.
    #[error("there is no student of this name; correct the name, or add the account first")]
    UnknownStudent,
    /// Nothing was handed in.
    #[error("content is blank; write what was handed in")]
    Blank,
    /// Postgres's text cannot hold it.
    #[error("content holds the NUL character; take it out")]
    Nul,
    /// More than the API takes.
    #[error("content is larger than 1 MiB; make it shorter")]
    TooLarge,
    /// The rest of the file became one text.
    #[error(
        "a quotation mark of this row is never closed, so that the rest of the file became one text; close it"
    )]
    OpenQuote,
}

/// The file cannot be read, or not any further.
#[derive(Debug, thiserror::Error)]
pub enum BadFile {
    /// The first line does not name the columns.
    #[error(
        "the first line must name the columns {columns}, separated by commas, in UTF-8; {0}; nothing was written",
        columns = COLUMNS.join(",")
    )]
    Header(BadHeader),
    /// A row that has no end.
    #[error(
        "line {line}: the row does not end within 16 MiB; close its quotation mark; nothing after it was read"
    )]
    EndlessRow {
        /// Where it begins.
        line: u64,
    },
    /// The system cannot read on.
    #[error("the file cannot be read after line {line}")]
    Io {
        /// The last line that was read.
        line: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// What is wrong with the first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadHeader {
    /// There is none.
    Empty,
    /// A column is missing.
    Missing(&'static str),
    /// A column stands there twice.
    Twice(&'static str),
    /// A column is not known: nothing is ignored silently.
    Unknown(String),
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there is no line"),
            Self::Missing(name) => write!(f, "`{name}` is missing"),
            Self::Twice(name) => write!(f, "`{name}` stands there twice"),
            Self::Unknown(name) => write!(f, "`{}` is not known", name.escape_debug()),
        }
    }
}

/// Rows that were read together.
#[derive(Debug)]
pub struct Chunk {
    /// The rows, in the order of the file.
    pub rows: Vec<Row>,
    /// How many bytes of the file were read so far.
    pub bytes_read: u64,
}

/// A file whose header was good.
#[derive(Debug)]
pub struct RowFile<R> {
    reader: csv::Reader<Lines<R>>,
    /// Where each of [`COLUMNS`] stands.
    order: [usize; 4],
    record: ByteRecord,
    /// Why it cannot be read any further, until the rows before that were given out.
    broken: Option<BadFile>,
}

impl<R: BufRead> RowFile<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When it is not the one that is expected, or the file cannot be read.
    pub fn open(input: R) -> Result<Self, BadFile> {
        let reader = ReaderBuilder::new()
            // Both are checked here, so that a bad row or header is told in our words.
            .has_headers(false)
            .flexible(true)
            .from_reader(Lines::new(input));
        let mut file = Self {
            reader,
            order: [0; 4],
            record: ByteRecord::new(),
            broken: None,
        };
        if !file.read_record()? {
            return Err(BadFile::Header(BadHeader::Empty));
        }
        file.order = read_header(&file.record).map_err(BadFile::Header)?;
        Ok(file)
    }

    /// Reads some rows; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read any further; every row before that was given out.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, BadFile> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let mut rows = Vec::with_capacity(CHUNK_ROWS);
        let mut bytes = 0;
        while rows.len() < CHUNK_ROWS && bytes < CHUNK_BYTES {
            match self.read_record() {
                Ok(true) => {
                    bytes += self.record.as_slice().len();
                    rows.push(self.row());
                }
                Ok(false) => break,
                Err(broken) if rows.is_empty() => return Err(broken),
                Err(broken) => {
                    self.broken = Some(broken);
                    break;
                }
            }
        }
        Ok((!rows.is_empty()).then(|| Chunk {
            rows,
            bytes_read: self.reader.get_ref().bytes,
        }))
    }

    fn read_record(&mut self) -> Result<bool, BadFile> {
        self.reader.get_mut().row_bytes = 0;
        self.reader
            .read_byte_record(&mut self.record)
            .map_err(|error| {
                let lines = self.reader.get_ref();
                match error.into_kind() {
                    _ if lines.row_bytes > MAX_ROW => BadFile::EndlessRow {
                        line: lines.row_begins,
                    },
                    csv::ErrorKind::Io(source) => BadFile::Io {
                        line: lines.line,
                        source,
                    },
                    other => BadFile::Io {
                        line: lines.line,
                        source: io::Error::other(format!("{other:?}")),
                    },
                }
            })
    }

    /// The row that was just read.
    fn row(&self) -> Row {
        let lines = self.reader.get_ref();
        let breaks = self.record.as_slice().iter().filter(|b| **b == b'\n');
        let cell = |at: usize| {
            let bytes = self.record.get(self.order[at]).unwrap_or_default();
            String::from_utf8_lossy(bytes).trim().to_owned()
        };
        Row {
            place: Place {
                // INVARIANT: the parser asks for a line only when it needs it, so the last one asked for is the row's last.
                // The break behind the file's last line is in the row only when its quotation mark stayed open.
                line: lines.line + u64::from(lines.ended) - breaks.count() as u64,
                cells: [cell(0), cell(1), cell(2)],
            },
            work: if lines.ended {
                Err(InvalidRow::OpenQuote)
            } else {
                self.check()
            },
        }
    }

    fn check(&self) -> Result<Work, InvalidRow> {
        if self.record.len() != COLUMNS.len() {
            return Err(InvalidRow::Columns(self.record.len()));
        }
        let text = |at: usize| {
            let bytes = self.record.get(self.order[at]).unwrap_or_default();
            std::str::from_utf8(bytes).map_err(|_| InvalidRow::NotUtf8(COLUMNS[at]))
        };
        number::<i64>(text(0)?).ok_or(InvalidRow::TaskId)?;
        let student = text(1)?.trim();
        if student.is_empty() || student.contains(char::is_control) {
            return Err(InvalidRow::StudentName);
        }
        let submit_version = number::<i32>(text(2)?).ok_or(InvalidRow::Version)?;
        let content = text(3)?;
        if content.len() > MAX_CONTENT {
            return Err(InvalidRow::TooLarge);
        }
        check_submission(submit_version, content).map_err(|invalid| match invalid {
            InvalidBody::Version | InvalidBody::Sequence | InvalidBody::ClientId => {
                InvalidRow::Version
            }
            InvalidBody::BlankContent => InvalidRow::Blank,
            InvalidBody::Nul => InvalidRow::Nul,
        })?;
        Ok(Work {
            submit_version,
            content: content.to_owned(),
        })
    }
}

fn read_header(record: &ByteRecord) -> Result<[usize; 4], BadHeader> {
    let mut order = [None; 4];
    for (at, name) in record.iter().enumerate() {
        let name = String::from_utf8_lossy(name);
        let name = name.trim();
        let Some(column) = COLUMNS.iter().position(|known| *known == name) else {
            let short: String = name.chars().take(40).collect();
            return Err(BadHeader::Unknown(short));
        };
        if order[column].replace(at).is_some() {
            return Err(BadHeader::Twice(COLUMNS[column]));
        }
    }
    let mut found = [0; 4];
    for (column, at) in order.into_iter().enumerate() {
        found[column] = at.ok_or(BadHeader::Missing(COLUMNS[column]))?;
    }
    Ok(found)
}

/// A number from 1 in its one spelling: another would give one row several keys.
fn number<N: std::str::FromStr + ToString>(text: &str) -> Option<N> {
    let text = text.trim();
    text.parse()
        .ok()
        .filter(|n: &N| !text.starts_with(['-', '0']) && n.to_string() == text)
}

/// Hands out one line for each read, and a line break after the last line when it has none.
///
/// That tells where a row begins and whether a quotation mark stays open, which the parser does not: its own positions
/// count blank lines and the second half of CRLF to the row that follows.
#[derive(Debug)]
struct Lines<R> {
    input: R,
    /// The line that the last read was a part of.
    line: u64,
    /// Whether that read reached its end.
    line_is_whole: bool,
    /// Whether somebody asked for more than there is.
    ended: bool,
    bytes: u64,
    /// Bytes of the row that is being read.
    row_bytes: u64,
    row_begins: u64,
}

impl<R> Lines<R> {
    const fn new(input: R) -> Self {
        Self {
            input,
            line: 0,
            line_is_whole: true,
            ended: false,
            bytes: 0,
            row_bytes: 0,
            row_begins: 1,
        }
    }
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let available = self.input.fill_buf()?;
        let begins = self.line_is_whole;
        let n = if available.is_empty() {
            if self.line_is_whole {
                self.ended = true;
                return Ok(0);
            }
            buffer[0] = b'\n';
            self.line_is_whole = true;
            return Ok(1);
        } else {
            let most = &available[..available.len().min(buffer.len())];
            let end = most.iter().position(|b| *b == b'\n');
            self.line_is_whole = end.is_some();
            end.map_or(most.len(), |at| at + 1)
        };
        buffer[..n].copy_from_slice(&available[..n]);
        self.input.consume(n);
        self.line += u64::from(begins);
        if self.row_bytes == 0 {
            self.row_begins = self.line;
        }
        self.bytes += n as u64;
        self.row_bytes += n as u64;
        if self.row_bytes > MAX_ROW {
            return Err(io::Error::other("a row without an end"));
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Line and content, or line and sentence, of each row below the usual header.
    fn read(rows: &str) -> Vec<(u64, Result<String, InvalidRow>)> {
        read_bytes(format!("task_id,student,submit_version,content\n{rows}").as_bytes())
    }

    fn read_bytes(bytes: &[u8]) -> Vec<(u64, Result<String, InvalidRow>)> {
        // A small buffer, so that lines are cut.
        let input = io::BufReader::with_capacity(7, bytes);
        let mut file = RowFile::open(input).unwrap();
        let mut found = Vec::new();
        while let Some(chunk) = file.next_chunk().unwrap() {
            found.extend(
                chunk
                    .rows
                    .into_iter()
                    .map(|row| (row.place.line, row.work.map(|work| work.content))),
            );
        }
        found
    }

    fn header(text: &[u8]) -> String {
        RowFile::open(text).err().map_or_else(
            || "good".into(),
            |error| match error {
                BadFile::Header(header) => header.to_string(),
                other => other.to_string(),
            },
        )
    }

    #[test]
    fn rows_are_read_with_the_line_on_which_they_begin() {
        for end in ["\n", "\r\n"] {
            let text = "\n\n1,a,1,one\n\n\n2,a,1,\"two\nlines, \"\"quoted\"\"\"\n3,a,1, three \n4,a,1,\"\nfour\n\"\n5,a,1,five"
                .replace('\n', end);
            let whole = format!("\u{feff}task_id,student,submit_version,content{text}");
            let expected: Vec<(u64, Result<String, InvalidRow>)> = [
                (3, "one".to_owned()),
                (6, format!("two{end}lines, \"quoted\"")),
                (8, " three ".to_owned()),
                (9, format!("{end}four{end}")),
                (12, "five".to_owned()),
            ]
            .map(|(line, content)| (line, Ok(content)))
            .into();
            assert_eq!(read_bytes(whole.as_bytes()), expected);
            assert_eq!(read_bytes(format!("{whole}{end}").as_bytes()), expected);
            assert_eq!(
                read_bytes(format!("{whole}{end}{end}").as_bytes()),
                expected
            );
        }
    }

    #[rstest]
    #[case("1,a,1", InvalidRow::Columns(3))]
    #[case("1,a,1,x,y", InvalidRow::Columns(5))]
    #[case("   ", InvalidRow::Columns(1))]
    #[case(",a,1,x", InvalidRow::TaskId)]
    #[case("0,a,1,x", InvalidRow::TaskId)]
    #[case("007,a,1,x", InvalidRow::TaskId)]
    #[case("-1,a,1,x", InvalidRow::TaskId)]
    #[case("+1,a,1,x", InvalidRow::TaskId)]
    #[case("1.0,a,1,x", InvalidRow::TaskId)]
    #[case("9223372036854775808,a,1,x", InvalidRow::TaskId)]
    #[case("1,,1,x", InvalidRow::StudentName)]
    #[case("1,a\0b,1,x", InvalidRow::StudentName)]
    #[case("1,a,0,x", InvalidRow::Version)]
    #[case("1,a,one,x", InvalidRow::Version)]
    #[case("1,a,2147483648,x", InvalidRow::Version)]
    #[case("1,a,1,", InvalidRow::Blank)]
    #[case("1,a,1,\" \n\t\"", InvalidRow::Blank)]
    #[case("1,a,1,x\0", InvalidRow::Nul)]
    fn a_bad_row_is_told_and_the_next_is_read(#[case] bad: &str, #[case] reason: InvalidRow) {
        let rows = read(&format!("1,a,1,before\n{bad}\n 2 , a , 1 ,after"));
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0], (2, Ok("before".into())));
        assert_eq!(rows[1], (3, Err(reason)));
        assert_eq!(rows[2].1, Ok("after".into()));
    }

    #[test]
    fn what_is_not_utf8_is_told_by_its_column() {
        let mut bytes = b"task_id,student,submit_version,content\n".to_vec();
        bytes.extend(b"1,\xff,1,x\n1,a,1,\xe9\xe8\n1,a,1,good\n");
        assert_eq!(
            read_bytes(&bytes),
            [
                (2, Err(InvalidRow::NotUtf8("student"))),
                (3, Err(InvalidRow::NotUtf8("content"))),
                (4, Ok("good".into()))
            ]
        );
    }

    #[test]
    fn content_is_as_large_as_the_apis_and_no_larger() {
        let text = "x".repeat(MAX_CONTENT);
        let rows = read(&format!("1,a,1,{text}\n1,a,1,{text}x\n1,a,1,small\n"));
        assert_eq!(rows[0].1, Ok(text));
        assert_eq!(rows[1], (3, Err(InvalidRow::TooLarge)));
        assert_eq!(rows[2], (4, Ok("small".into())));
    }

    #[test]
    fn an_open_quotation_mark_is_told_where_it_is() {
        for rest in ["", "\n", "\n2,a,1,y", "\n2,a,1,y\n"] {
            let rows = read(&format!("1,a,1,x\n1,a,2,\"open{rest}"));
            assert_eq!(rows.len(), 2);
            assert_eq!(rows[1], (3, Err(InvalidRow::OpenQuote)), "{rest:?}");
        }
    }

    #[test]
    fn a_row_without_an_end_is_not_gathered() {
        let head = b"task_id,student,submit_version,content\n1,a,1,x\n1,a,1,\"";
        let endless = head.chain(io::repeat(b'x'));
        let mut file = RowFile::open(io::BufReader::new(endless)).unwrap();
        let before = file.next_chunk().unwrap().unwrap();
        assert_eq!(before.rows.len(), 1, "what was read before is not lost");
        let error = file.next_chunk().unwrap_err();
        assert!(
            matches!(error, BadFile::EndlessRow { line: 3 }),
            "{error:?}"
        );
    }

    #[test]
    fn the_header_names_the_four_columns_in_any_order() {
        assert_eq!(
            header(b"content, student ,task_id,submit_version\n"),
            "good"
        );
        assert_eq!(
            header(b"\xef\xbb\xbftask_id,student,submit_version,content\r\n"),
            "good"
        );
        assert_eq!(header(b"task_id,student,submit_version,content"), "good");
        assert_eq!(header(b""), "there is no line");
        assert_eq!(header(b"\n\n"), "there is no line");
        assert_eq!(
            header(b"task_id,student,content\n"),
            "`submit_version` is missing"
        );
        assert_eq!(
            header(b"task_id,student,student,submit_version,content\n"),
            "`student` stands there twice"
        );
        assert_eq!(
            header(b"task_id,student,submit_version,content,grade\n"),
            "`grade` is not known"
        );
        assert_eq!(
            header(b"task_id;student;submit_version;content\n"),
            "`task_id;student;submit_version;content` is not known"
        );
        assert_eq!(header(b"1,student1,1,x\n"), "`1` is not known");
    }

    #[test]
    fn columns_are_found_by_their_name() {
        let rows = read_bytes(b"content,submit_version,student,task_id\nwork,2,a,1\n");
        assert_eq!(rows, [(2, Ok("work".into()))]);
    }
}

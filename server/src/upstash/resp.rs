use std::io::{self, Write};

use delayline_tokio::redis::Value;

use super::item::said;

/// Writes a reply as Redis sent it, in RESP2. What RESP2 has two forms of nil for is written in one, `$-1`.
pub(super) fn write(value: &Value, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::Int(number) => write!(out, ":{number}\r\n"),
        Value::BulkString(bytes) => {
            write!(out, "${}\r\n", bytes.len())?;
            out.write_all(bytes)?;
            out.write_all(b"\r\n")
        }
        Value::SimpleString(text) => write!(out, "+{text}\r\n"),
        Value::Okay => out.write_all(b"+OK\r\n"),
        Value::ServerError(error) => write_error(&said(error), out),
        Value::Array(values) => {
            write!(out, "*{}\r\n", values.len())?;
            values.iter().try_for_each(|value| write(value, out))
        }
        _ => out.write_all(b"$-1\r\n"),
    }
}

/// Writes an error. It is one line: a line break that a client has put into it would begin another reply.
pub(super) fn write_error(text: &str, out: &mut impl Write) -> io::Result<()> {
    write!(out, "-{}\r\n", text.replace(['\r', '\n'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use delayline_tokio::redis::parse_redis_value;

    #[test]
    fn a_reply_is_written_as_it_was_read() {
        for resp in [
            "+OK\r\n",
            "+PONG\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "$4\r\na\r\nb\r\n",
            ":-9223372036854775808\r\n",
            "-ERR wrong type\r\n",
            "-MINE\r\n",
            "*0\r\n",
            "*4\r\n+OK\r\n:1\r\n$-1\r\n*2\r\n$1\r\na\r\n*1\r\n$2\r\nOK\r\n",
        ] {
            let mut written = Vec::new();
            write(&parse_redis_value(resp.as_bytes()).unwrap(), &mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), resp);
        }
    }

    #[test]
    fn an_error_is_one_line_whatever_is_in_it() {
        let mut written = Vec::new();
        write_error("ERR not available: 'A\r\n+OK'", &mut written).unwrap();
        assert_eq!(written, b"-ERR not available: 'A  +OK'\r\n");
    }
}

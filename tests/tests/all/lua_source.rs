//! Just enough of Lua's grammar to find names that nobody declared and numbers that are joined to text.

use std::collections::BTreeSet;

const KEYWORDS: [&str; 21] = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
    "not", "or", "repeat", "return", "then", "true", "until", "while",
];
const GLOBALS: [&str; 10] =
    ["KEYS", "ARGV", "redis", "string", "table", "math", "tonumber", "ipairs", "unpack", "type"];
/// Names that always hold text, beside all that end in `_text`.
const TEXTS: [&str; 9] = ["tag", "queue", "engine", "score", "ext", "reason", "answer", "letters", "]"];
/// Functions that return text.
const MAKE_TEXT: [&str; 5] = ["num", "format", "concat", "sub", "rep"];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Text,
    Number,
    Sign(String),
}

/// Names that are read or written before any declaration of theirs in the source.
pub(crate) fn undeclared(source: &str) -> BTreeSet<String> {
    let tokens = tokens(source);
    let mut known: BTreeSet<String> = GLOBALS.map(str::to_string).into();
    let mut unknown = BTreeSet::new();
    let mut i = 0;
    while i < tokens.len() {
        match &tokens[i] {
            Token::Name(word) if word == "local" || word == "for" => i = declare(&tokens, i + 1, &mut known),
            Token::Name(word) if word == "function" => i = parameters(&tokens, i + 1, &mut known),
            Token::Name(word) if !KEYWORDS.contains(&word.as_str()) && !is_field(&tokens, i) => {
                if !known.contains(word) {
                    unknown.insert(word.clone());
                }
                i += 1;
            }
            _ => i += 1,
        }
    }
    unknown
}

/// Operands of `..` that may be numbers.
pub(crate) fn joined(source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    for i in (1..tokens.len().saturating_sub(1)).filter(|&i| tokens[i] == Token::Sign("..".to_string())) {
        if !is_text_before(&tokens[..i]) {
            found.push(format!("{:?} ..", tokens[i - 1]));
        }
        if !is_text_after(&tokens[i + 1..]) {
            found.push(format!(".. {:?}", tokens[i + 1]));
        }
    }
    found
}

fn is_text_before(tokens: &[Token]) -> bool {
    match tokens.last() {
        Some(Token::Text) => true,
        Some(Token::Name(name)) => is_text(name),
        Some(Token::Sign(sign)) if sign == ")" => {
            called(tokens).is_some_and(|name| MAKE_TEXT.contains(&name))
        }
        Some(Token::Sign(sign)) => {
            // ARGV[n] is text.
            sign == "]" && tokens.iter().rev().find_map(name) == Some("ARGV")
        }
        _ => false,
    }
}

fn is_text_after(tokens: &[Token]) -> bool {
    match tokens.first() {
        Some(Token::Text) => true,
        Some(Token::Name(first)) => {
            let fields = tokens[1..].chunks(2).take_while(|pair| pair[0] == sign("."));
            let last = fields.filter_map(|pair| name(pair.get(1)?)).last().unwrap_or(first);
            is_text(last) || MAKE_TEXT.contains(&last) || first == "ARGV"
        }
        _ => false,
    }
}

fn is_text(name: &str) -> bool {
    TEXTS.contains(&name) || name.ends_with("_text")
}

/// The name of the function whose call ends here.
fn called(tokens: &[Token]) -> Option<&str> {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().rev() {
        match token {
            Token::Sign(sign) if sign == ")" => depth += 1,
            Token::Sign(sign) if sign == "(" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return tokens[..i].last().and_then(name);
        }
    }
    None
}

fn name(token: &Token) -> Option<&str> {
    match token {
        Token::Name(name) => Some(name),
        _ => None,
    }
}

fn sign(text: &str) -> Token {
    Token::Sign(text.to_string())
}

/// After a dot, or the key of a table's field.
fn is_field(tokens: &[Token], i: usize) -> bool {
    let dotted = i > 0 && tokens[i - 1] == sign(".");
    let opens = i > 0 && (tokens[i - 1] == sign("{") || tokens[i - 1] == sign(","));
    dotted || (opens && tokens.get(i + 1) == Some(&sign("=")) && in_table(&tokens[..i]))
}

fn in_table(tokens: &[Token]) -> bool {
    let mut depth = 0;
    for token in tokens.iter().rev() {
        match token {
            Token::Sign(sign) if sign == "}" => depth += 1,
            Token::Sign(sign) if sign == "{" && depth == 0 => return true,
            Token::Sign(sign) if sign == "{" => depth -= 1,
            _ => {}
        }
    }
    false
}

/// The names after `local` or `for`, and the function if it declares one.
fn declare(tokens: &[Token], mut i: usize, known: &mut BTreeSet<String>) -> usize {
    if tokens.get(i).and_then(name) == Some("function") {
        return parameters(tokens, i + 1, known);
    }
    while let Some(word) = tokens.get(i).and_then(name) {
        known.insert(word.to_string());
        i += 1;
        if tokens.get(i) != Some(&sign(",")) {
            break;
        }
        i += 1;
    }
    i
}

/// The name of a function, if it has one, and its parameters.
fn parameters(tokens: &[Token], mut i: usize, known: &mut BTreeSet<String>) -> usize {
    while let Some(token) = tokens.get(i) {
        if let Some(word) = name(token) {
            known.insert(word.to_string());
        }
        i += 1;
        if *token == sign(")") {
            break;
        }
    }
    i
}

fn tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("--") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '\'' {
            let len = rest[1..].find('\'').map_or(rest.len(), |end| end + 2);
            tokens.push(Token::Text);
            len
        } else if first.is_ascii_alphabetic() || first == '_' {
            let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..len].to_string()));
            len
        } else if first.is_ascii_digit() {
            tokens.push(Token::Number);
            rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len())
        } else {
            let signs = ["...", "..", "==", "~=", "<=", ">="];
            let text =
                signs.into_iter().find(|text| rest.starts_with(text)).unwrap_or(&rest[..first.len_utf8()]);
            tokens.push(sign(text));
            text.len()
        };
        rest = rest[len..].trim_start();
    }
    tokens
}

#[test]
fn planted_mistakes_are_found() {
    let undeclared_names =
        undeclared("local a = b\nlocal function f(x) return x.y + z end\nc = {d = a, [a] = e}");
    assert_eq!(undeclared_names, ["b", "c", "e", "z"].map(str::to_string).into());
    assert_eq!(joined("local a = 'x' .. now .. num(now) .. string.format('%d', 1)").len(), 2);
}

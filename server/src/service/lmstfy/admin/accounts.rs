use std::path::PathBuf;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64ct::{Base64, Encoding};
use delayline_http::BearerToken;

use super::super::Shared;
use crate::failure::Failure;
use crate::service::audit::Act;
use crate::service::request_context::RequestContext;

const SCHEME: &str = "basic ";

/// Who may administer, by name and password; anybody if there are no accounts.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Accounts(Vec<Account>);

/// No account is shown that there is.
#[derive(Debug, PartialEq, Eq)]
struct Denied;

#[derive(Clone, Debug)]
struct Account {
    name: String,
    /// Of name and password.
    hash: BearerToken,
}

impl Accounts {
    /// Reads accounts that are written as `NAME:FILE`, where the file holds the password.
    pub(in super::super) fn read(accounts: &[String]) -> Result<Accounts, Failure> {
        accounts.iter().map(|account| read(account)).collect::<Result<_, _>>().map(Accounts)
    }

    /// The account that a request shows; none if none is needed.
    fn admit(&self, headers: &HeaderMap) -> Result<Option<&str>, Denied> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let credentials = credentials(headers).ok_or(Denied)?;
        let account = self.0.iter().find(|account| account.hash.is(&credentials)).ok_or(Denied)?;
        Ok(Some(&account.name))
    }
}

/// The name and the password that a request shows, with a colon between them.
fn credentials(headers: &HeaderMap) -> Option<Vec<u8>> {
    let given = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credentials) = given.split_at_checked(SCHEME.len())?;
    Base64::decode_vec(credentials).ok().filter(|_| scheme.eq_ignore_ascii_case(SCHEME))
}

fn read(account: &str) -> Result<Account, Failure> {
    let (name, path) = account
        .split_once(':')
        .filter(|(name, path)| !name.is_empty() && !path.is_empty())
        .ok_or_else(|| {
            let wanted = "write NAME:FILE, where the file holds the password";
            Failure::Usage(format!("--lmstfy-account {account:?} is no account: {wanted}"))
        })?;
    let path = PathBuf::from(path);
    let password = std::fs::read_to_string(&path);
    let password = password.map_err(|why| Failure::Unreadable { path: path.clone(), why })?;
    let password = password.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        let why = "a file without a password lets anybody in who knows the name";
        return Err(Failure::Usage(format!("--lmstfy-account {name}: {} is empty: {why}", path.display())));
    }
    Ok(Account { name: name.to_owned(), hash: BearerToken::new(&format!("{name}:{password}")) })
}

/// Lets a request through if it shows an account, and puts down what it changes.
pub(super) async fn check(State(lmstfy): State<Shared>, request: Request, next: Next) -> Response {
    let Ok(account) = lmstfy.accounts.admit(request.headers()) else {
        let realm = [(header::WWW_AUTHENTICATE, "Basic realm=\"Authorization Required\"")];
        return (StatusCode::UNAUTHORIZED, realm).into_response();
    };
    let act = (request.method() != Method::GET).then(|| {
        let context = RequestContext::of(request.extensions());
        // The path may hold a token; its route and its namespace do not.
        let route = context.route().unwrap_or_default();
        let namespace = request.uri().path().split('/').nth(2).unwrap_or_default();
        let path = route.replace("{namespace}", namespace);
        Act::of_lmstfy(request.method().as_str(), path, account, context.client)
    });
    let response = next.run(request).await;
    if let Some(act) = act {
        lmstfy.app.audit.record(&act, response.status().as_u16()).await;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(accounts: &Accounts, authorization: &str) -> bool {
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, authorization.parse().unwrap())]);
        accounts.admit(&headers) == Ok(Some("ann"))
    }

    #[test]
    fn an_account_is_a_name_and_the_password_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ann");
        std::fs::write(&file, "s3:cret\n").unwrap();
        let accounts = Accounts::read(&[format!("ann:{}", file.display())]).unwrap();
        let basic = |text: &str| format!("Basic {}", Base64::encode_string(text.as_bytes()));
        assert!(admits(&accounts, &basic("ann:s3:cret")));
        assert!(admits(&accounts, &basic("ann:s3:cret").replace("Basic", "bAsIc")));
        for wrong in ["ann:s3:cre", "ann:s3:cret\n", "bob:s3:cret", "ann", ""] {
            assert!(!admits(&accounts, &basic(wrong)), "{wrong}");
        }
        assert!(!admits(&accounts, "Bearer s3:cret") && !admits(&accounts, "Basic"));
        assert_eq!(accounts.admit(&HeaderMap::new()), Err(Denied));
        assert_eq!(Accounts::default().admit(&HeaderMap::new()), Ok(None));
        assert!(!format!("{accounts:?}").contains("s3"));
    }

    #[test]
    fn an_account_that_cannot_be_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "\n").unwrap();
        for (account, says) in [
            ("ann", "write NAME:FILE"),
            (":file", "write NAME:FILE"),
            ("ann:", "write NAME:FILE"),
            (&format!("ann:{}", empty.display()), "is empty"),
            (&format!("ann:{}/none", folder.path().display()), "cannot read"),
        ] {
            let refused = Accounts::read(&[account.to_owned()]).unwrap_err().to_string();
            assert!(refused.contains(says), "{account}: {refused}");
        }
    }
}

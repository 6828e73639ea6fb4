use delayline_tokio::{JobId, NameError, Namespace, QueueName};

/// What lmstfy keeps of a job beside its body: in the timer set, in a ready list, or in a dead list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    pub(super) namespace: String,
    pub(super) queue: String,
    /// How many deliveries remain.
    pub(super) tries: u16,
    pub(super) id: String,
}

impl Handle {
    /// Reads a member of the timer set: `H namespace H queue H tries H id`, where H is a length, or the tries, in 16 bits,
    /// the lower first.
    pub(super) fn of_timer(member: &[u8]) -> Result<Handle, &'static str> {
        let mut rest = member;
        let namespace = text(&mut rest)?;
        let queue = text(&mut rest)?;
        let tries = number(&mut rest)?;
        let id = text(&mut rest)?;
        if !rest.is_empty() {
            return Err("bytes follow its end");
        }
        Ok(Handle { namespace, queue, tries, id })
    }

    /// Reads an element of a ready or dead list of a queue: `H tries H id`.
    pub(super) fn of_list(namespace: &str, queue: &str, element: &[u8]) -> Result<Handle, &'static str> {
        let mut rest = element;
        let tries = number(&mut rest)?;
        let id = text(&mut rest)?;
        if !rest.is_empty() {
            return Err("bytes follow its end");
        }
        Ok(Handle { namespace: namespace.to_owned(), queue: queue.to_owned(), tries, id })
    }

    /// The same as a member of the timer set.
    pub(super) fn to_timer(&self) -> Vec<u8> {
        let Handle { namespace, queue, tries, id } = self;
        let length = |text: &str| u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes();
        let (tries, mut member) = (tries.to_le_bytes(), Vec::new());
        for part in [&length(namespace), namespace.as_bytes(), &length(queue), queue.as_bytes(), &tries] {
            member.extend_from_slice(part);
        }
        member.extend_from_slice(&length(id));
        member.extend_from_slice(id.as_bytes());
        member
    }

    /// The same as an element of a list.
    pub(super) fn to_list(&self) -> Vec<u8> {
        let length = u16::try_from(self.id.len()).unwrap_or(u16::MAX);
        [&self.tries.to_le_bytes(), &length.to_le_bytes(), self.id.as_bytes()].concat()
    }

    /// Where its body is.
    pub(super) fn body_key(&self) -> Vec<u8> {
        format!("j/{}/{}/{}", self.namespace, self.queue, self.id).into_bytes()
    }

    /// Its names in delayline.
    pub(super) fn names(&self) -> Result<(QueueName, JobId), NameError> {
        let namespace: Namespace = self.namespace.parse()?;
        Ok((QueueName::within(&namespace, &self.queue)?, self.id.parse()?))
    }
}

fn number(rest: &mut &[u8]) -> Result<u16, &'static str> {
    let (number, after) = rest.split_first_chunk::<2>().ok_or("it is cut short")?;
    *rest = after;
    Ok(u16::from_le_bytes(*number))
}

fn text(rest: &mut &[u8]) -> Result<String, &'static str> {
    let length = number(rest)?;
    let (text, after) = rest.split_at_checked(length.into()).ok_or("it is cut short")?;
    *rest = after;
    String::from_utf8(text.to_vec()).map_err(|_| "a name in it is no text")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBER: &[u8] = b"\x02\0ns\x01\0q\x03\x01\x04\0ULID";

    #[test]
    fn a_member_of_the_timer_set_is_read_and_written() {
        let handle = Handle::of_timer(MEMBER).unwrap();
        assert_eq!((&*handle.namespace, &*handle.queue, handle.tries, &*handle.id), ("ns", "q", 259, "ULID"));
        assert_eq!(handle.to_timer(), MEMBER);
        assert_eq!(handle.to_list(), b"\x03\x01\x04\0ULID");
        assert_eq!(Handle::of_list("ns", "q", &handle.to_list()), Ok(handle.clone()));
        assert_eq!(handle.body_key(), b"j/ns/q/ULID");
        assert_eq!(handle.names().unwrap().0.as_str(), "ns~q");
    }

    #[test]
    fn what_is_no_handle_is_refused() {
        for cut in 0..MEMBER.len() {
            assert!(Handle::of_timer(&MEMBER[..cut]).is_err(), "{cut}");
        }
        assert!(Handle::of_timer(&[MEMBER, b"x"].concat()).is_err());
        assert!(Handle::of_timer(b"\x02\0\xff\xff\x01\0q\x03\0\x01\0x").is_err());
        assert!(Handle::of_list("ns", "q", b"\x01\0\x02\0x").is_err());
        assert!(Handle::of_list("ns", "q", b"\x01\0\x01\0xy").is_err());
        for (namespace, queue, id) in [("", "q", "1"), ("a b", "q", "1"), ("ns", "a/b", "1"), ("ns", "q", "")]
        {
            let (namespace, queue, id) = (namespace.into(), queue.into(), id.into());
            assert!(Handle { namespace, queue, tries: 1, id }.names().is_err());
        }
    }
}

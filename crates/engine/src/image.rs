//! A file's bytes with what is known of them: digest, text form, whether they held still while they were read.

use cotenant_model::{Content, Digest};
use cotenant_text::{Encoding, Form, NotText, View};

/// An image of a file.
#[derive(Clone, Debug)]
pub struct Image {
    /// The raw bytes.
    pub bytes: Content,
    /// Their digest.
    pub digest: Digest,
    /// Their form; meaningless where `text` is false.
    pub form: Form,
    /// Whether they are text.
    pub text: bool,
    /// Why they are not.
    pub why_not_text: String,
    /// The file changed while it was read (R18): shown, but no receipt, and no plan is made from it.
    pub unstable: bool,
}

impl Image {
    /// An image of bytes whose encoding may be declared.
    pub fn of(bytes: Content, declared: Option<Encoding>) -> Image {
        match cotenant_text::detect(&bytes, declared) {
            Ok(form) => Image::text(bytes, form),
            Err(why) => Image { text: false, why_not_text: why.to_string(), ..Image::text(bytes, plain()) },
        }
    }

    /// An image of text that was just composed.
    ///
    /// # Errors
    /// It is not text after all: a NUL was written.
    pub fn fresh(bytes: Content) -> Result<Image, NotText> {
        cotenant_text::detect(&bytes, None).map(|form| Image::text(bytes, form))
    }

    /// An image of bytes that were just composed, whatever they are.
    pub fn fresh_or_binary(bytes: Content) -> Image {
        Image::of(bytes, None)
    }

    /// An image of bytes that have the encoding of `form`, such as the result of an edit.
    pub fn known(bytes: Content, form: &Form) -> Image {
        let form = cotenant_text::detect(&bytes, Some(form.encoding)).unwrap_or(*form);
        Image::text(bytes, form)
    }

    /// A file of which only the digest was taken: no bytes, and no text because of `why`.
    pub fn unread(digest: Digest, why: &str) -> Image {
        Image { digest, text: false, why_not_text: why.to_owned(), ..Image::text(Content::from([]), plain()) }
    }

    /// The bytes, where they were read.
    pub fn content(&self) -> Option<Content> {
        let read = !self.bytes.is_empty() || self.digest == Digest::of(b"");
        read.then(|| Content::clone(&self.bytes))
    }

    fn text(bytes: Content, form: Form) -> Image {
        let digest = bytes.digest();
        Image { digest, bytes, form, text: true, why_not_text: String::new(), unstable: false }
    }

    /// Lines, 0 for what is not text.
    pub fn line_count(&self) -> usize {
        if self.text { cotenant_text::line_count(&self.bytes, &self.form) } else { 0 }
    }

    /// The first three lines, each cut at `bytes`, as a sentence with a space after it; empty for no text.
    pub fn glimpse(&self, bytes: usize) -> String {
        if !self.text {
            return "It is not text. ".to_owned();
        }
        let view = View::new(&self.bytes, &self.form);
        let line =
            |number| view.line(number).map(|line| format!("`{}`", cotenant_text::clip(line, bytes).text));
        let lines: Vec<String> = (1..=3).map_while(line).collect();
        if lines.is_empty() {
            "It is empty. ".to_owned()
        } else {
            format!("First lines: {}. ", lines.join(" / "))
        }
    }
}

/// The form of nothing.
fn plain() -> Form {
    // Detecting an empty text cannot fail; the other arm is there because the type says so.
    match cotenant_text::detect(b"", None) {
        Ok(form) => form,
        Err(_) => Form {
            encoding: Encoding::Utf8,
            bom: false,
            eol: cotenant_text::Eol::None,
            majority: cotenant_text::Break::Lf,
            final_newline: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_is_an_image_too() {
        let image = Image::of(b"v\0x\n"[..].into(), None);
        assert!(!image.text && !image.why_not_text.is_empty());
        assert_eq!((image.line_count(), image.glimpse(9)), (0, "It is not text. ".to_owned()));
    }

    #[test]
    fn an_image_that_was_not_read_has_no_content() {
        let unread = Image::unread(Digest::of(b"much"), "it is too large");
        assert_eq!((unread.content(), unread.line_count(), unread.digest), (None, 0, Digest::of(b"much")));
        for bytes in [&b""[..], b"x\n", b"v\0x"] {
            assert_eq!(Image::of(bytes.into(), None).content().as_deref(), Some(bytes));
        }
    }

    #[test]
    fn a_glimpse_is_three_short_lines() {
        let image = Image::of(b"# Plan for 0.3\n\nlast\nmore\n"[..].into(), None);
        assert_eq!(image.line_count(), 4);
        assert_eq!(image.glimpse(60), "First lines: `# Plan for 0.3` / `` / `last`. ");
        assert_eq!(Image::of(b""[..].into(), None).glimpse(60), "It is empty. ");
    }
}

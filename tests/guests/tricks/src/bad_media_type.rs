//! Returns an image whose type would write a header of its own into a request.

use contract::{Answer, Arguments, Blob, Content, Output};

pub(crate) fn run(_: &Arguments) -> Answer {
    Ok(Output {
        content: vec![Content::Image(Blob {
            media_type: "image/png\r\nx-forged: 1".to_owned(),
            data: vec![1, 2, 3],
        })],
        structured: None,
    })
}

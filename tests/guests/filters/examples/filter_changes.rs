//! Moves what is written to another file; of a call that says `spoil` it makes arguments that fit no schema.

filters::filter!(|subject: filters::Subject| {
    let to = if subject.arguments.contains("spoil") {
        "3"
    } else {
        "\"moved.txt\""
    };
    filters::CallVerdict::Change(subject.arguments.replace("\"new.txt\"", to))
});

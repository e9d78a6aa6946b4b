//! HTML as Markdown, and as plain text.

use std::rc::Rc;

use htmd::{HtmlToMarkdown, Node};
use markup5ever_rcdom::NodeData;
use url::Url;

/// What holds nothing to read.
const SKIPPED: [&str; 9] = [
    "head", "script", "style", "noscript", "template", "svg", "iframe", "object", "canvas",
];
/// The conversion to Markdown calls itself for each level; pages that people write have some dozens.
const DEEPEST: usize = 200;

/// As Markdown, with links made absolute. A page nested so deep that nobody wrote it comes as plain text.
pub(crate) fn markdown(source: &str, base: &Url) -> String {
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    let Ok(tree) = converter.html_to_tree(source) else {
        return source.to_owned();
    };
    let survey = survey(&tree, base);
    let body = if survey.depth > DEEPEST {
        text_of(&tree)
    } else {
        converter.tree_to_markdown(&tree)
    };
    with_title(&survey.title, &body)
}

/// As plain text.
pub(crate) fn plain(source: &str) -> String {
    match HtmlToMarkdown::new().html_to_tree(source) {
        Ok(tree) => text_of(&tree),
        Err(_) => source.to_owned(),
    }
}

fn with_title(title: &str, body: &str) -> String {
    let first = body.lines().next().unwrap_or_default().trim_start_matches('#').trim();
    if title.is_empty() || title == first {
        body.to_owned()
    } else {
        format!("title: {title}\n\n{body}")
    }
}

#[derive(Default)]
struct Survey {
    title: String,
    depth: usize,
}

/// Goes through the whole tree once, without calling itself, and makes links absolute on the way.
fn survey(tree: &Rc<Node>, base: &Url) -> Survey {
    let mut survey = Survey::default();
    let mut open = vec![(tree.clone(), 0)];
    while let Some((node, depth)) = open.pop() {
        survey.depth = survey.depth.max(depth);
        if let NodeData::Element { name, attrs, .. } = &node.data {
            let tag: &str = &name.local;
            if tag == "title" && survey.title.is_empty() {
                survey.title = one_line(&text_of(&node));
            }
            for attribute in attrs.borrow_mut().iter_mut() {
                let leads = matches!((tag, &*attribute.name.local), ("a", "href") | ("img", "src"));
                if leads && let Ok(whole) = base.join(&attribute.value) {
                    // A picture inside the page is a wall of base64 to a model.
                    let text = if whole.scheme() == "data" {
                        "data:…"
                    } else {
                        whole.as_str()
                    };
                    attribute.value = text.into();
                }
            }
        }
        open.extend(node.children.borrow().iter().map(|child| (child.clone(), depth + 1)));
    }
    survey
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

enum Step {
    Node(Rc<Node>),
    Break(&'static str),
}

/// The text below `tree`, without calling itself.
fn text_of(tree: &Rc<Node>) -> String {
    let mut out = String::new();
    let mut open = vec![Step::Node(tree.clone())];
    while let Some(step) = open.pop() {
        let node = match step {
            Step::Break(text) => {
                if !out.ends_with('\n') {
                    out.push_str(text);
                }
                continue;
            }
            Step::Node(node) => node,
        };
        match &node.data {
            NodeData::Text { contents } => push_words(&mut out, &contents.borrow()),
            NodeData::Element { name, .. } => {
                let tag: &str = &name.local;
                if tag != "title" && SKIPPED.contains(&tag) && !Rc::ptr_eq(&node, tree) {
                    continue;
                }
                match tag {
                    "br" => out.push('\n'),
                    "td" | "th" => open.push(Step::Break(" ")),
                    tag if is_block(tag) => {
                        if !out.is_empty() && !out.ends_with('\n') {
                            out.push('\n');
                        }
                        open.push(Step::Break("\n"));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        open.extend(node.children.borrow().iter().rev().cloned().map(Step::Node));
    }
    let lines = out.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Adds text, every run of white space as one space.
fn push_words(out: &mut String, text: &str) {
    let spaced = out.is_empty() || out.ends_with(char::is_whitespace);
    if text.starts_with(char::is_whitespace) && !spaced {
        out.push(' ');
    }
    let words = one_line(text);
    out.push_str(&words);
    if text.ends_with(char::is_whitespace) && !words.is_empty() {
        out.push(' ');
    }
}

fn is_block(tag: &str) -> bool {
    matches!(
        tag,
        "address"
            | "article"
            | "aside"
            | "blockquote"
            | "body"
            | "dd"
            | "details"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "h1"
            | "h2"
            | "h3"
            | "h4"
            | "h5"
            | "h6"
            | "header"
            | "hr"
            | "li"
            | "main"
            | "nav"
            | "ol"
            | "p"
            | "pre"
            | "section"
            | "table"
            | "tr"
            | "ul"
    )
}

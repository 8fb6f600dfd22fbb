//! Text that tries to become markup, and whether any of it did.

/// What a script may put into a name: an element, a handler, a style, a comment, and letters that are not
/// seen.
pub(crate) const EVIL: &str = "\"><img src=x onerror=alert(1)><script>alert(2)</script>' onfocus='x' \
style=\"color:red\" &<!--\u{202e}\u{2066}\u{1b}[2J";

/// Elements that our pages have.
const ELEMENTS: &str = "a b body caption circle code dd defs desc details div dl dt figcaption figure \
footer g h1 h2 h3 header i li line main marker nav ol p path pattern polygon polyline pre rect script \
section span summary svg table tbody td text th thead title tr tspan ul";

/// What in a page's body is no markup of tidegate's: elements and attributes that scripts need, letters that
/// are not seen.
pub(crate) fn loose(page: &str) -> Vec<String> {
    let body = page.split_once("<body>").map_or("", |(_, body)| body);
    let (body, script) = body.split_once("<script>").unwrap_or((body, ""));
    let mut found = Vec::new();
    for tag in body.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else {
            found.push(format!("<{tag} is not closed"));
            continue;
        };
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if !ELEMENTS.split(' ').any(|known| known == name.trim_start_matches('/')) {
            found.push(format!("<{tag}>"));
        }
        // Of `a="1" b c="2"` every other part between quotation marks is outside.
        let outside = attributes.split('"').step_by(2).collect::<Vec<_>>().join(" ");
        let handlers =
            outside.split_whitespace().filter(|word| word.starts_with("on") || word.starts_with("style"));
        found.extend(handlers.map(|word| format!("{word} in <{tag}>")));
    }
    let unseen = page.chars().filter(|letter| *letter != '\n' && !tidegate_text::is_visible(*letter));
    found.extend(unseen.map(|letter| format!("{letter:?}")));
    if script.matches("</script>").count() != 1 {
        found.push("a script that ends early".to_owned());
    }
    found
}

use super::*;

fn read(endpoint: Option<&str>, env: &[(&str, &str)]) -> Settings {
    let config = Telemetry {
        endpoint: endpoint.map(str::to_owned),
        content: false,
    };
    Settings::read(&config, &|name| {
        env.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    })
}

fn url(settings: &Settings) -> Option<&str> {
    settings.url.as_ref().map(Url::as_str)
}

#[test]
fn nothing_is_sent_unless_a_collector_is_named() {
    assert!(read(None, &[]).url.is_none());
    assert!(
        read(
            None,
            &[("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]
        )
        .url
        .is_none()
    );
}

#[test]
fn the_operators_file_goes_before_the_environment_and_a_switch_before_both() {
    let env = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://theirs:4318");
    for (own, env, expected) in [
        (Some("http://mine:4318"), vec![env], Some("http://mine:4318/v1/traces")),
        (
            Some("http://mine:4318/base/"),
            vec![],
            Some("http://mine:4318/base/v1/traces"),
        ),
        (Some("http://mine/v1/traces"), vec![], Some("http://mine/v1/traces")),
        (None, vec![env], Some("http://theirs:4318/v1/traces")),
        (
            None,
            vec![env, ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/x")],
            Some("http://t/x"),
        ),
        (Some("http://mine"), vec![env, ("OTEL_SDK_DISABLED", "TRUE")], None),
        (Some("http://mine"), vec![("OTEL_TRACES_EXPORTER", "none")], None),
        (
            Some("http://mine"),
            vec![env, ("OTEL_TRACES_EXPORTER", "otlp")],
            Some("http://mine/v1/traces"),
        ),
        (
            None,
            vec![env, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")],
            Some("http://theirs:4318/v1/traces"),
        ),
    ] {
        let settings = read(own, &env);
        assert_eq!(url(&settings), expected, "{own:?} {env:?}");
        assert!(settings.warnings.is_empty(), "{:?}", settings.warnings);
    }
}

#[test]
fn what_cannot_be_used_is_a_warning_that_quotes_no_key() {
    for (env, says) in [
        (
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "api-key-0123456789"),
            "OTEL_EXPORTER_OTLP_ENDPOINT is not used",
        ),
        (
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:api-key-0123456789@h"),
            "it holds credentials",
        ),
        (
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "file:///api-key-0123456789"),
            "it is not an `http://`",
        ),
        (
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key-0123456789"),
            "a part of it is not `name=value`",
        ),
        (
            ("OTEL_EXPORTER_OTLP_HEADERS", "x=api-key-0123456789%0a"),
            "a part of it is not `name=value`",
        ),
    ] {
        let settings = read(None, &[env]);
        let warnings = settings.warnings.join("\n");
        assert!(warnings.contains(says) && !warnings.contains("api-key"), "{warnings}");
        assert!(settings.url.is_none() && settings.headers.is_empty());
    }
    let grpc = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ];
    let settings = read(None, &grpc);
    assert!(
        settings.url.is_none() && settings.warnings[0].contains("`grpc`"),
        "{:?}",
        settings.warnings
    );
    // Who names a collector for fief has said how it is spoken to.
    assert_eq!(
        url(&read(Some("http://mine"), &grpc[1..])),
        Some("http://mine/v1/traces")
    );
}

#[test]
fn headers_go_to_their_own_origin_alone() {
    let headers = (
        "OTEL_EXPORTER_OTLP_HEADERS",
        "authorization=Basic%20c2VjcmV0LWtleQ==, x-team=a",
    );
    let theirs = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://theirs:4318");
    for (own, env) in [
        (None, vec![theirs, headers]),
        (Some("https://mine"), vec![headers]),
        (Some("https://theirs:4318/other"), vec![theirs, headers]),
    ] {
        let settings = read(own, &env);
        let sent = settings
            .headers
            .get("authorization")
            .and_then(|value| value.to_str().ok());
        assert_eq!(sent, Some("Basic c2VjcmV0LWtleQ=="), "{own:?}");
        assert_eq!(settings.headers.len(), 2);
        assert!(settings.warnings.is_empty());
    }
    let settings = read(Some("https://mine"), &[theirs, headers]);
    assert!(settings.headers.is_empty());
    assert!(settings.warnings[0].contains("is not sent to `https://mine`: it belongs to `https://theirs:4318`"));
    assert!(
        !format!("{:?}", read(None, &[theirs, headers])).contains("c2VjcmV0"),
        "no key is printed"
    );
}

#[test]
fn who_sends_is_named() {
    let name = |env: &[(&str, &str)]| {
        let resource = read(None, env).resource;
        let found: Vec<_> = resource.iter().filter(|(key, _)| key == "service.name").collect();
        assert_eq!(found.len(), 1);
        found[0].1.clone()
    };
    let attributes = (
        "OTEL_RESOURCE_ATTRIBUTES",
        "service.name=a%20b,deployment.environment.name=test",
    );
    assert_eq!(name(&[]), "fief");
    assert_eq!(name(&[attributes]), "a b");
    assert_eq!(name(&[attributes, ("OTEL_SERVICE_NAME", "mine")]), "mine");
    assert!(
        read(None, &[attributes])
            .resource
            .contains(&("deployment.environment.name".into(), "test".into()))
    );
}

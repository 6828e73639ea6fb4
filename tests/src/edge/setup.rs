use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use delayline_bundle::{Bundle, Kind};

use crate::scratch::Scratch;

const CRON: &str = include_str!("cron.js");
const QUEUE: &str = include_str!("queue.js");
/// Not later than the workerd that `tests/run` gets.
const DATE: &str = "2026-11-01";

/// What a worker is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    bundle: Bundle,
    date: String,
    variables: BTreeMap<String, String>,
    objects: BTreeMap<String, String>,
    queue: Option<(String, String)>,
}

impl Setup {
    /// A worker with no bindings.
    pub fn of(bundle: &Bundle) -> Setup {
        let (variables, objects) = (BTreeMap::new(), BTreeMap::new());
        Setup { bundle: bundle.clone(), date: DATE.to_string(), variables, objects, queue: None }
    }

    /// With workerd's behaviour of that day.
    #[must_use]
    pub fn compatibility_date(mut self, date: &str) -> Setup {
        self.date = date.to_string();
        self
    }

    /// With a variable; secrets are read in the same way.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Setup {
        self.variables.insert(name.to_string(), value.to_string());
        self
    }

    /// With the worker's own class of Durable Objects, which keep what they store while workerd runs.
    #[must_use]
    pub fn durable_object(mut self, binding: &str, class: &str) -> Setup {
        self.objects.insert(binding.to_string(), class.to_string());
        self
    }

    /// With a queue, of which the worker is both producer and consumer: a message is its own batch, and a batch that
    /// fails is gone.
    #[must_use]
    pub fn queue(mut self, binding: &str, name: &str) -> Setup {
        self.queue = Some((binding.to_string(), name.to_string()));
        self
    }

    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The worker's modules, and what workerd is told about them in `config.capnp`.
    pub(super) fn written(&self) -> Scratch {
        let scratch = Scratch::new("worker");
        for module in &self.bundle.modules {
            let copy = scratch.path().join(&module.name);
            fs::create_dir_all(copy.parent().expect("a file in a directory")).expect("a directory");
            fs::copy(self.bundle.directory.join(&module.name), copy).expect("a module of the bundle");
        }
        fs::create_dir(scratch.path().join("objects")).expect("a directory");
        for (name, text) in [("cron.js", CRON), ("queue.js", QUEUE), ("config.capnp", &self.config())] {
            fs::write(scratch.path().join(name), text).expect("a file");
        }
        scratch
    }

    fn config(&self) -> String {
        let (date, modules, bindings) = (&self.date, self.modules(), self.bindings());
        let objects = self
            .objects
            .values()
            .map(|class| format!("(className = \"{class}\", uniqueKey = \"{class}\", enableSql = true)"));
        let objects = objects.collect::<Vec<_>>().join(", ");
        let queue = self.queue.as_ref().map(|(_, name)| name.as_str()).unwrap_or_default();
        format!(
            r#"using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "app", worker = (
      modules = [{modules}],
      compatibilityDate = "{date}",
      bindings = [{bindings}],
      durableObjectNamespaces = [{objects}],
      durableObjectStorage = (localDisk = "objects"),
      globalOutbound = "net")),
    (name = "cron", worker = (
      modules = [(name = "cron.js", esModule = embed "cron.js")],
      compatibilityDate = "{date}",
      compatibilityFlags = ["service_binding_extra_handlers"],
      bindings = [(name = "APP", service = "app")])),
    (name = "queue", worker = (
      modules = [(name = "queue.js", esModule = embed "queue.js")],
      compatibilityDate = "{date}",
      compatibilityFlags = ["service_binding_extra_handlers"],
      bindings = [(name = "APP", service = "app"), (name = "NAME", text = "{queue}")])),
    (name = "objects", disk = (path = "objects", writable = true)),
    (name = "net", network = (allow = ["private", "public"])),
  ],
  sockets = [
    (name = "http", address = "127.0.0.1:0", http = (), service = "app"),
    (name = "cron", address = "127.0.0.1:0", http = (), service = "cron"),
  ],
);
"#
        )
    }

    fn modules(&self) -> String {
        let modules = self.bundle.modules.iter().map(|module| {
            let kind = match module.kind {
                Kind::Script => "esModule",
                Kind::Wasm => "wasm",
            };
            format!("(name = \"{0}\", {kind} = embed \"{0}\")", module.name)
        });
        modules.collect::<Vec<_>>().join(", ")
    }

    fn bindings(&self) -> String {
        let mut bindings = String::new();
        for name in self.variables.keys() {
            let _ = write!(bindings, "(name = \"{name}\", fromEnvironment = \"{name}\"), ");
        }
        for (name, class) in &self.objects {
            let _ = write!(bindings, "(name = \"{name}\", durableObjectNamespace = \"{class}\"), ");
        }
        if let Some((name, _)) = &self.queue {
            let _ = write!(bindings, "(name = \"{name}\", queue = \"queue\"), ");
        }
        bindings.trim_end_matches(", ").to_string()
    }
}

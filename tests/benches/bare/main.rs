//! The bare program that whole processes are compared with: it maps or compiles components with wasmtime alone, on an
//! engine with the settings of Fief's own. `cargo bench --bench ratios` builds and runs it.
#![allow(clippy::print_stdout)] // Its answer is its output.

use std::sync::Mutex;

use wasmtime::component::Component;

mod wasm;

use wasm::Bare;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["save", component, code] => {
            let bytes = std::fs::read(component)?;
            std::fs::write(code, fief_sandbox::engine(&[], false)?.precompile_component(&bytes)?)?;
            Ok(())
        }
        ["call", code, tool, json] => {
            let engine = fief_sandbox::engine(&[], false)?;
            // SAFETY: the file is one that `save` wrote for this bench, in its own directory below `target`.
            let component = unsafe { Component::deserialize_file(&engine, code) }?;
            let bare = Bare::link(&engine, &component)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            println!("{}", runtime.block_on(bare.call(tool, json))?);
            Ok(())
        }
        ["compile", at_once, components @ ..] => compile(at_once.parse()?, components),
        _ => {
            println!("this is a part of `cargo bench --bench ratios`, which runs it");
            Ok(())
        }
    }
}

/// Compiles components, so many at once.
fn compile(at_once: usize, components: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let engine = fief_sandbox::engine(&[], false)?;
    let left = Mutex::new(components.to_vec());
    let next = || left.lock().ok()?.pop();
    let work = || -> Result<(), String> {
        while let Some(path) = next() {
            let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
            Bare::compile(&engine, &bytes).map_err(|error| format!("{path}: {error:#}"))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

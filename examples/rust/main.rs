//! Adds vectors by four threads: on the GPU where there is one, else, or with the argument cpu, on CPU threads.
mod gyre;
mod gyre_sys;

use gyre::{Result, Runtime, Schema};

const ADDER: &str = "gyre::actors::VectorAdd";

/// Asks for `n` + [10, 20, 30], and returns the reply as JSON.
fn add(runtime: &Runtime, schema: &Schema, n: u64) -> Result<String> {
    let request = schema.type_id("VectorAddRequest")?;
    let response = schema.type_id("VectorAddResponse")?;
    let message = schema.encode(request, &format!(r#"{{"a": [{n}, {n}, {n}], "b": [10, 20, 30]}}"#))?;
    let call = runtime.ask(ADDER, n, request, &message)?;
    call.reply(|bytes| schema.decode(response, bytes))?
}

fn run() -> Result<()> {
    let on_cpu = std::env::args().nth(1).as_deref() == Some("cpu");
    let runtime = Runtime::launch(on_cpu)?;
    let schema = Schema::of_builtin_actors()?;
    println!("gyre {} on {}", gyre::version(), runtime.device_name()?);

    let replies: Result<Vec<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u64).map(|n| { let (r, s) = (&runtime, &schema); scope.spawn(move || add(r, s, n)) }).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    for (n, reply) in replies?.iter().enumerate() {
        println!("{n}: {reply}");
    }

    // What goes wrong is an error with its text.
    let request = schema.type_id("VectorAddRequest")?;
    match runtime.ask("my::Nobody", 0, request, &schema.encode(request, "{}")?) {
        Ok(_) => println!("an actor that does not exist was found"),
        Err(error) => println!("status {}: {}", error.status, error.text),
    }
    println!("the books {}", if runtime.terminate()? { "balance" } else { "do not balance" });
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{}", error.text);
        std::process::exit(1);
    }
}

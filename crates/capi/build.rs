//! Gives the shared library its name for the linker: programs ask for the version of the interface, not for a
//! file of Cargo's.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtidegate.so.0");
    }
}

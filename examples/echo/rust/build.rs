// Translates echo.proto, with protoc, and keeps its description for reflection.
fn main() -> std::io::Result<()> {
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    tonic_prost_build::configure()
        .build_client(false)
        .build_transport(false)
        .file_descriptor_set_path(out.join("echo.bin"))
        .compile_protos(&["../echo.proto"], &[".."])
}

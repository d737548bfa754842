//! Gyre's C interface, <gyre/gyre.h>: what this example uses of it, declared as the header does.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_void};

pub type gyre_status = i32;
pub type gyre_runtime = u64;
pub type gyre_schema = u64;
pub type gyre_call = u64;

pub const GYRE_OK: gyre_status = 0;
pub const GYRE_ENGINE_CPU: i32 = 2;
pub const GYRE_BODY: i32 = 0;
pub const GYRE_TEXT_DEVICE_NAME: i32 = 0;
pub const GYRE_DEFAULT_TIMEOUT: i64 = -1;

#[repr(C)]
pub struct gyre_options {
    pub struct_size: usize,
    pub engine: i32,
    pub device: i32,
    pub transport: i32,
    pub wait: i32,
    pub workers: u32,
    pub block: u32,
    pub blocks: u32,
    pub slots: u32,
    pub slot_bytes: u32,
    pub max_reply_bytes: u32,
    pub actors_per_worker: u32,
    pub max_buffers: u32,
    pub grid_scoped: i32,
    pub verbose: i32,
    pub cache: i32,
    pub isolation: i32,
    pub timeout_ms: i64,
    pub arena_bytes: u64,
    pub region_budget: u64,
    pub keep_program: *const c_char,
    pub pin_workers: *const i32,
    pub pin_worker_count: usize,
    pub heartbeat_timeout_ms: i64,
    pub restart_times: u32,
    pub multiprocessors: u32,
    pub restart_within_ms: i64,
    pub cuda_context: *mut c_void,
    pub context: i32,
    pub reserved: i32,
    pub stall_after_ms: i64,
    pub spill_bytes: u64,
    pub body_pool_bytes: u64,
    pub body_bytes: u32,
    pub reserved_2: u32,
}

#[repr(C)]
pub struct gyre_termination {
    pub struct_size: usize,
    pub worker_stuck: i32,
    pub balanced: i32,
    pub uptime_s: f64,
    pub terminate_ms: f64,
    pub sender_stuck: i32,
    pub reader_stuck: i32,
    pub unfinished: i32,
    pub buffers_stuck: i32,
}

/// Files of a schema, and options of a send: the example passes null for both.
pub enum gyre_text {}
pub enum gyre_send_options {}

#[link(name = "gyre")]
extern "C" {
    pub fn gyre_version() -> *const c_char;
    pub fn gyre_last_error() -> *const c_char;
    pub fn gyre_options_init(options: *mut gyre_options, struct_size: usize) -> gyre_status;
    pub fn gyre_launch(actors: u64, options: *const gyre_options, runtime: *mut gyre_runtime) -> gyre_status;
    pub fn gyre_runtime_text(
        runtime: gyre_runtime, which: i32, buffer: *mut c_char, capacity: usize, size: *mut usize,
    ) -> gyre_status;
    pub fn gyre_terminate(runtime: gyre_runtime, timeout_ns: i64, report: *mut gyre_termination) -> gyre_status;
    pub fn gyre_runtime_release(runtime: gyre_runtime) -> gyre_status;
    pub fn gyre_schema_parse(files: *const gyre_text, count: usize, schema: *mut gyre_schema) -> gyre_status;
    pub fn gyre_schema_type_id(schema: gyre_schema, name: *const c_char, id: *mut u64) -> gyre_status;
    pub fn gyre_schema_release(schema: gyre_schema) -> gyre_status;
    pub fn gyre_message_from_json(
        schema: gyre_schema, type_id: u64, json: *const c_char, json_length: usize, encoding: i32,
        buffer: *mut c_void, capacity: usize, size: *mut usize,
    ) -> gyre_status;
    pub fn gyre_message_to_json(
        schema: gyre_schema, type_id: u64, bytes: *const c_void, bytes_size: usize, encoding: i32,
        buffer: *mut c_char, capacity: usize, size: *mut usize,
    ) -> gyre_status;
    pub fn gyre_ask(
        runtime: gyre_runtime, actor: *const c_char, key: u64, request: u64, bytes: *const c_void,
        bytes_size: usize, options: *const gyre_send_options, call: *mut gyre_call,
    ) -> gyre_status;
    pub fn gyre_call_wait(call: gyre_call, timeout_ns: i64) -> gyre_status;
    pub fn gyre_call_reply(call: gyre_call, body: *mut *const c_void, body_size: *mut usize) -> gyre_status;
    pub fn gyre_call_release(call: gyre_call) -> gyre_status;
}

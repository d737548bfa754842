//! A safe layer over the C interface: handles that release themselves, and errors with Gyre's text.
use crate::gyre_sys::*;
use std::ffi::{CStr, CString};
use std::ptr::null;

/// What failed: the status, and the text that says what was being done, what is wrong and what to do.
#[derive(Debug)]
pub struct Error {
    pub status: i32,
    pub text: String,
}

pub type Result<T> = std::result::Result<T, Error>;

/// To be called on the thread of the call, right after it.
fn check(status: gyre_status) -> Result<()> {
    if status == GYRE_OK {
        return Ok(());
    }
    let text = unsafe { CStr::from_ptr(gyre_last_error()) }.to_string_lossy().into_owned();
    Err(Error { status, text })
}

fn c_text(text: &str) -> CString {
    CString::new(text).expect("names and JSON hold no zero byte")
}

/// Calls `read` for the size of a text, and again to get it.
fn text_of(mut read: impl FnMut(*mut std::os::raw::c_char, usize, *mut usize) -> gyre_status) -> Result<String> {
    let mut size = 0;
    read(std::ptr::null_mut(), 0, &mut size); // GYRE_TOO_SMALL, and the size
    let mut buffer = vec![0u8; size + 1];
    check(read(buffer.as_mut_ptr().cast(), buffer.len(), &mut size))?;
    buffer.truncate(size);
    Ok(String::from_utf8_lossy(&buffer).into_owned())
}

pub fn version() -> String {
    unsafe { CStr::from_ptr(gyre_version()) }.to_string_lossy().into_owned()
}

/// Workers that run the built-in actors. Any thread may use it.
pub struct Runtime {
    handle: gyre_runtime,
}

impl Runtime {
    /// On the GPU where there is one, else on CPU threads; with `on_cpu` on CPU threads in any case.
    pub fn launch(on_cpu: bool) -> Result<Runtime> {
        let mut options = unsafe { std::mem::zeroed::<gyre_options>() };
        let mut handle = 0;
        unsafe {
            check(gyre_options_init(&mut options, std::mem::size_of::<gyre_options>()))?;
            if on_cpu {
                options.engine = GYRE_ENGINE_CPU;
            }
            check(gyre_launch(0, &options, &mut handle))?;
        }
        Ok(Runtime { handle })
    }

    pub fn device_name(&self) -> Result<String> {
        text_of(|buffer, capacity, size| unsafe {
            gyre_runtime_text(self.handle, GYRE_TEXT_DEVICE_NAME, buffer, capacity, size)
        })
    }

    /// Sends `request`, of the type `request_type`, to the actor `key`. Blocks only while there is no room.
    pub fn ask(&self, actor: &str, key: u64, request_type: u64, request: &[u8]) -> Result<Call> {
        let mut handle = 0;
        check(unsafe {
            gyre_ask(self.handle, c_text(actor).as_ptr(), key, request_type, request.as_ptr().cast(), request.len(),
                     null(), &mut handle)
        })?;
        Ok(Call { handle })
    }

    /// Ends the workers. True if every message had its outcome.
    pub fn terminate(self) -> Result<bool> {
        let mut report = unsafe { std::mem::zeroed::<gyre_termination>() };
        report.struct_size = std::mem::size_of::<gyre_termination>();
        check(unsafe { gyre_terminate(self.handle, GYRE_DEFAULT_TIMEOUT, &mut report) })?;
        Ok(report.balanced != 0)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        unsafe { gyre_runtime_release(self.handle) };
    }
}

/// An ask that was sent.
pub struct Call {
    handle: gyre_call,
}

impl Call {
    /// Waits for the reply, and gives its bytes to `read`.
    pub fn reply<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        let (mut body, mut size) = (null(), 0);
        unsafe {
            check(gyre_call_wait(self.handle, GYRE_DEFAULT_TIMEOUT))?;
            check(gyre_call_reply(self.handle, &mut body, &mut size))?;
            Ok(read(std::slice::from_raw_parts(body.cast(), size)))
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        unsafe { gyre_call_release(self.handle) };
    }
}

/// Gyre's own messages. A program with a Cap'n Proto library needs no schema here: it makes the bytes itself.
pub struct Schema {
    handle: gyre_schema,
}

impl Schema {
    pub fn of_builtin_actors() -> Result<Schema> {
        let mut handle = 0;
        check(unsafe { gyre_schema_parse(null(), 0, &mut handle) })?;
        Ok(Schema { handle })
    }

    pub fn type_id(&self, name: &str) -> Result<u64> {
        let mut id = 0;
        check(unsafe { gyre_schema_type_id(self.handle, c_text(name).as_ptr(), &mut id) })?;
        Ok(id)
    }

    pub fn encode(&self, type_id: u64, json: &str) -> Result<Vec<u8>> {
        let write = |bytes: &mut [u8], size: &mut usize| unsafe {
            gyre_message_from_json(self.handle, type_id, json.as_ptr().cast(), json.len(), GYRE_BODY,
                                   bytes.as_mut_ptr().cast(), bytes.len(), size)
        };
        let mut size = 0;
        let mut bytes = vec![0u8; 64];
        if write(&mut bytes, &mut size) != GYRE_OK {
            bytes.resize(size, 0); // where the reason was another one, the second call says it
            check(write(&mut bytes, &mut size))?;
        }
        bytes.truncate(size);
        Ok(bytes)
    }

    pub fn decode(&self, type_id: u64, bytes: &[u8]) -> Result<String> {
        text_of(|buffer, capacity, size| unsafe {
            gyre_message_to_json(self.handle, type_id, bytes.as_ptr().cast(), bytes.len(), GYRE_BODY, buffer, capacity,
                                 size)
        })
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        unsafe { gyre_schema_release(self.handle) };
    }
}

//! How many streams one browser keeps open: over HTTP/1.1 it has six connections to a server for all its tabs together. Whoever gets
//! no slot asks again and again instead, so that there is always a connection left for the next page.

use std::cell::Cell;

use js_sys::{Function, Object, Promise, Reflect};
use leptos::prelude::window;
use wasm_bindgen::{JsCast, JsValue, closure::Closure};

/// Streams at a time, of all the tabs of a browser; two of its connections are left for everything else.
const SLOTS: u32 = 4;

/// The right to have a stream open. It ends with the page, whatever becomes of that.
#[derive(Debug)]
pub(super) struct Slot(Option<Function>);

impl Slot {
    /// Leaves it to another tab.
    pub(super) fn release(self) {
        if let Some(release) = self.0 {
            let _ = release.call0(&JsValue::UNDEFINED);
        }
    }
}

thread_local! {
    /// The page's slot: a browser's page has one thread, and the server has none.
    static HELD: Cell<Option<Slot>> = const { Cell::new(None) };
}

/// Keeps the page's slot, until it is left.
pub(super) fn hold(slot: Slot) {
    HELD.set(Some(slot));
}

/// Leaves the page's slot, if it has one.
pub(super) fn leave() {
    if let Some(slot) = HELD.take() {
        slot.release();
    }
}

/// Takes a slot if one is free, and says so.
pub(super) fn take(then: impl FnOnce(Option<Slot>) + 'static) {
    take_from(0, Box::new(then));
}

fn take_from(n: u32, then: Box<dyn FnOnce(Option<Slot>)>) {
    let member = |of: &JsValue, name: &str| Reflect::get(of, &name.into()).ok();
    let locks = member(&window().navigator(), "locks").filter(JsValue::is_object);
    let request = locks.as_ref().and_then(|locks| member(locks, "request"));
    let request = request.and_then(|request| request.dyn_into::<Function>().ok());
    // Only secure pages have locks. On any other one nobody can count, and each has its stream.
    let Some((locks, request)) = locks.zip(request) else {
        return then(Some(Slot(None)));
    };
    // Called at once, with null when somebody has it; the lock is held until what it gives is resolved.
    let answer = Closure::once_into_js(move |lock: JsValue| -> JsValue {
        if lock.is_null() && n + 1 < SLOTS {
            take_from(n + 1, then);
            return JsValue::UNDEFINED;
        }
        if lock.is_null() {
            then(None);
            return JsValue::UNDEFINED;
        }
        let mut release = None;
        let held = Promise::new(&mut |resolve, _| release = Some(resolve));
        then(Some(Slot(release)));
        held.into()
    });
    let options = Object::new();
    // Setting a member of a fresh plain object cannot fail.
    let _ = Reflect::set(&options, &"ifAvailable".into(), &JsValue::TRUE);
    let name = JsValue::from_str(&format!("yici-stream-{n}"));
    let _ = request.call3(&locks, &name, &options, &answer);
}

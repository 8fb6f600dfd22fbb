//! The kernel's numbers for netfilter's words.

use tidegate_policy::netfilter::Hook;

pub(super) const fn hook(hook: Hook) -> u32 {
    match hook {
        Hook::Prerouting => 0,
        Hook::Input => 1,
        Hook::Forward => 2,
        Hook::Output => 3,
        Hook::Postrouting => 4,
    }
}

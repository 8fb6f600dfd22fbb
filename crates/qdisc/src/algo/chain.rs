//! Lists of table entries, strung by index: append, take the head, take from the middle, all in constant
//! time.

const NIL: u32 = u32::MAX;

/// An entry's place in a [`IndexList`].
#[derive(Clone, Copy, Debug)]
pub struct ListLink {
    prev: u32,
    next: u32,
    linked: bool,
}

impl Default for ListLink {
    fn default() -> ListLink {
        ListLink { prev: NIL, next: NIL, linked: false }
    }
}

impl ListLink {
    /// The entry behind it.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        (self.next != NIL).then_some(self.next)
    }

    /// Is the entry on a list?
    pub fn is_linked(&self) -> bool {
        self.linked
    }
}

/// Entries that carry a link.
pub trait Linked {
    /// The links of this element.
    fn link(&mut self) -> &mut ListLink;
}

/// A list of entries of one table. An entry is on at most one list.
#[derive(Clone, Copy, Debug)]
pub struct IndexList {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for IndexList {
    fn default() -> IndexList {
        IndexList { head: NIL, tail: NIL, len: 0 }
    }
}

impl IndexList {
    /// The first entry.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.head != NIL).then_some(self.head)
    }

    /// Number of entries.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// None?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an entry that is on no list.
    #[inline]
    pub fn push<T: Linked>(&mut self, table: &mut [T], at: u32) {
        *table[at as usize].link() = ListLink { prev: self.tail, next: NIL, linked: true };
        if self.tail == NIL {
            self.head = at;
        } else {
            table[self.tail as usize].link().next = at;
        }
        self.tail = at;
        self.len += 1;
    }

    /// Puts an entry that is on no list in front of all.
    pub fn push_front<T: Linked>(&mut self, table: &mut [T], at: u32) {
        *table[at as usize].link() = ListLink { prev: NIL, next: self.head, linked: true };
        if self.head == NIL {
            self.tail = at;
        } else {
            table[self.head as usize].link().prev = at;
        }
        self.head = at;
        self.len += 1;
    }

    /// Takes an entry of this list out.
    #[inline]
    pub fn remove<T: Linked>(&mut self, table: &mut [T], at: u32) {
        let ListLink { prev, next, .. } = core::mem::take(table[at as usize].link());
        if prev == NIL {
            self.head = next;
        } else {
            table[prev as usize].link().next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            table[next as usize].link().prev = prev;
        }
        self.len -= 1;
    }
}

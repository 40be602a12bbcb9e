#include "extension/engine/check/find_entry.hpp"

#include <type_traits>

#include "extension/engine/blink/search.hpp"

namespace engine {

using coherence::Errc;
using coherence::Result;

static_assert(std::is_trivially_destructible_v<blink::PageReader> && std::is_trivially_destructible_v<blink::Key>);

Result<bool> find_entry(bufmgr::BufferPool& pool, bufmgr::Session& session, const blink::Tree& tree,
                        blink::Comparator& compare, const void* search, Tid tid) {
  const blink::Seek place = blink::Seek::exact(search, tid);
  blink::PageReader reader;
  blink::Head head;
  blink::Key key;
  for (coherence::PageId from = tree.root();;) {
    if (session.interrupted()) return Errc::kInterrupted;
    GCL_TRY(blink::descend(pool, session, compare, place, from, 0, nullptr, nullptr, reader, head));
    uint32_t index = 0;
    Errc e = blink::position(compare, place, reader.source(), head, 0, head.count, index);
    if (e == Errc::kOk && index < head.count) {
      if (!blink::read_key(reader.source(), head, index, key))
        e = blink::torn_or_corrupt(reader.source());
      else if (!reader.source().validate())
        e = Errc::kRestart;
    }
    if (e == Errc::kOk) return index < head.count && blink::order(compare, place, key.span()) == 0;
    if (e != Errc::kRestart) return e;
    from = reader.id();
    reader.failed();
  }
}

}  // namespace engine

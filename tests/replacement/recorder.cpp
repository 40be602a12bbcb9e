#include "recorder.hpp"

#include "bufmgr/buffer_pool.hpp"

// What the linker makes of a call of BufferPool::name (--wrap in CMakeLists.txt): a member function is called as a
// function whose first parameter is the object.
#define RECORDED(type, name, symbol, parameters, arguments)                        \
  type real_##name parameters __asm__("__real__ZN6bufmgr10BufferPool" symbol);     \
  type recorded_##name parameters __asm__("__wrap__ZN6bufmgr10BufferPool" symbol); \
  type recorded_##name parameters {                                                \
    if (recording != nullptr) recording->push_back(page.raw);                      \
    return real_##name arguments;                                                  \
  }

namespace bufmgr {
namespace {

thread_local gcl_test::Trace* recording = nullptr;

}  // namespace

RECORDED(OptimisticGuard, peek, "4peekERNS_7SessionEN9coherence6PageIdE",
         (BufferPool & pool, Session& session, PageId page), (pool, session, page))
RECORDED(Status, copy_page, "9copy_pageERNS_7SessionEN9coherence6PageIdEPv",
         (BufferPool & pool, Session& session, PageId page, void* to), (pool, session, page, to))
RECORDED(Status, copy_parts, "10copy_partsERNS_7SessionEN9coherence6PageIdEPSt4byteNS3_6IntentE",
         (BufferPool & pool, Session& session, PageId page, std::byte* to, Intent intent),
         (pool, session, page, to, intent))
RECORDED(Result<SharedGuard>, fix_shared, "10fix_sharedERNS_7SessionEN9coherence6PageIdENS3_6IntentE",
         (BufferPool & pool, Session& session, PageId page, Intent intent), (pool, session, page, intent))
RECORDED(Result<SharedGuard>, try_shared, "10try_sharedERNS_7SessionEN9coherence6PageIdE",
         (BufferPool & pool, Session& session, PageId page), (pool, session, page))
RECORDED(Result<ExclusiveGuard>, fix_exclusive, "13fix_exclusiveERNS_7SessionEN9coherence6PageIdENS_6OthersE",
         (BufferPool & pool, Session& session, PageId page, Others others), (pool, session, page, others))
RECORDED(Result<ExclusiveGuard>, try_exclusive, "13try_exclusiveERNS_7SessionEN9coherence6PageIdE",
         (BufferPool & pool, Session& session, PageId page), (pool, session, page))
RECORDED(Result<OptimisticGuard>, fix_optimistic, "14fix_optimisticERNS_7SessionEN9coherence6PageIdENS3_6IntentE",
         (BufferPool & pool, Session& session, PageId page, Intent intent), (pool, session, page, intent))

}  // namespace bufmgr

namespace gcl_test {

Recording::Recording(Trace& to) {
  VERIFY(bufmgr::recording == nullptr);
  bufmgr::recording = &to;
}

Recording::~Recording() { bufmgr::recording = nullptr; }

}  // namespace gcl_test

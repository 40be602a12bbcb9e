#include "extension/engine/blink/meta.hpp"

#include "bufmgr/space/space_note.hpp"
#include "extension/engine/blink/search.hpp"

namespace engine::blink {
namespace {

// Reads what lies in the body of a page of type kBlinkMeta.
template <class T>
Status read_body(BufferPool& pool, Session& session, PageId page, T& body) {
  PageReader reader;
  for (;;) {
    GCL_TRY(reader.at(pool, session, page));
    const auto type = reader.source().get<PageType>(offsetof(PageHeader, type));
    reader.source().copy(kPageBody, &body, sizeof body);
    if (reader.source().validate())
      return type == PageType::kBlinkMeta && body.magic == T::kMagic ? Errc::kOk : Errc::kCorrupt;
    reader.failed();
  }
}

template <class T>
Status write_body(BufferPool& pool, Session& session, PageId page, const T& body) {
  bufmgr::MiniTransaction change(pool, session);
  GCL_TRY(change.reserve(256));
  auto guard = pool.fix_exclusive(session, page);
  if (!guard) return guard.error();
  change.join(*guard);
  change.set(*guard, kPageBody, body);
  change.commit();
  return {};
}

Status make_bin(const Ground& g, PageId page) {
  bufmgr::MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(512));
  auto meta = g.pool->fix_exclusive(*g.session, g.meta);
  if (!meta) return meta.error();
  g.session->next_wait(bufmgr::WaitOrder::kNew);
  auto bin = g.pool->fix_exclusive(*g.session, page);
  if (!bin) return bin.error();
  change.join(*meta);
  change.join(*bin);
  change.set(*meta, kPageBody + offsetof(Meta, bin), page);
  change.format(*bin, PageType::kBlinkMeta, g.relation());
  change.set(*bin, kPageBody, Bin{});
  change.commit();
  return {};
}

}  // namespace

Status read_meta(BufferPool& pool, Session& session, PageId page, Meta& meta) {
  GCL_TRY(read_body(pool, session, page, meta));
  return meta.format == Meta::kFormat ? Errc::kOk : Errc::kCorrupt;
}

Status read_bin(BufferPool& pool, Session& session, PageId page, Bin& bin) {
  return read_body(pool, session, page, bin);
}

Status open_bin(const Ground& g, PageId& bin) {
  Meta meta;
  GCL_TRY(read_meta(*g.pool, *g.session, g.meta, meta));
  bin = meta.bin;
  if (bin.valid()) return {};
  auto page = g.pool->allocate(*g.session, 1, bufmgr::PageUse::kHousekeeping);  // VACUUM in a full pool
  if (!page) return page.error();
  const Status made = make_bin(g, *page);
  if (made)
    bin = *page;
  else
    (void)g.pool->free(*g.session, *page, 1);
  return made;
}

Status advance_bin(const Ground& g, PageId page, uint64_t moment) {
  Bin bin;
  GCL_TRY(read_bin(*g.pool, *g.session, page, bin));
  VERIFY(!bin.waiting.valid());
  bin.waiting = std::exchange(bin.fresh, {});
  bin.moment = moment;
  return write_body(*g.pool, *g.session, page, bin);
}

Status free_first(BufferPool& pool, Session& session, PageId page, PageId Bin::*list) {
  Bin bin;
  GCL_TRY(read_bin(pool, session, page, bin));
  const PageId first = bin.*list;
  alignas(8) std::byte bytes[kPageSize];
  GCL_TRY(pool.copy_page(session, first, bytes));
  Head head;
  if (!read_head(Source::plain(bytes), head) || !head.deleted()) return Errc::kCorrupt;
  bin.*list = {head.special.gate};
  --bin.pages;
  bufmgr::PageNote unlink(pool, session, page, kPageBody, bin);
  return pool.free(session, first, 1, &unlink);
}

}  // namespace engine::blink

// The pages that cost most messages: of this primary all that its table holds, of the others the hottest of their last
// sample.
#include "coherence/stats/hot_pages.hpp"

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/rows.hpp"
#include "extension/pg/stats/our_relations.hpp"
#include "extension/pg/stats/sampler.hpp"

extern "C" {
#include "catalog/pg_class.h"
PG_FUNCTION_INFO_V1(gcl_stat_hot_pages_get);
PG_FUNCTION_INFO_V1(gcl_stat_reset_hot_pages);
}

namespace gcl {

using bufmgr::PageHeader;
using bufmgr::PageType;
using coherence::HotPage;
using coherence::NodeId;
using coherence::PageId;

namespace {

constexpr uint32_t kOwnMax = coherence::HotPages::kBuckets * coherence::HotPages::kWays;

const char* type_name(PageType type) {
  switch (type) {
    case PageType::kUnused:
      return "unused";
    case PageType::kPoolRoot:
      return "pool root";
    case PageType::kSpaceMap:
      return "space map";
    case PageType::kRelation:
      return "table header";
    case PageType::kExtentMap:
      return "table map";
    case PageType::kHeap:
      return "rows";
    case PageType::kBlinkMeta:
      return "index meta";
    case PageType::kBlinkInner:
      return "index inner";
    case PageType::kBlinkLeaf:
      return "index leaf";
    case PageType::kLockCells:
      return "row locks";
    case PageType::kLog:
    case PageType::kLogRoot:
      return "DDL log";
    case PageType::kList:
      return "list";
    case PageType::kSequence:
      return "sequence";
    case PageType::kStatus:
      return "status words";
    case PageType::kReclaim:
      return "reclaim list";
  }
  return "unknown";
}

// From the copy here if there is one, else from the pool, without asking for the page: a view must not move what it
// shows.  What a page is changes rarely; that of one whose holder has not written it back yet is what it was.
PageHeader header_of(PageId page) {
  bufmgr::OptimisticGuard look = pool().peek(session(), page);
  if (look) {
    const auto header = look.get<PageHeader>(0);
    if (look.validate()) return header;
  }
  PageHeader header{};
  coherence::Batch batch(page.node());
  batch.read(node_pool()->coherence_pool().page_address(page), &header, sizeof header);
  return session().memory().run(batch) ? header : PageHeader{};
}

bool is_table(const OurRelation& rel) { return rel.relkind == RELKIND_RELATION || rel.relkind == RELKIND_TOASTVALUE; }

// The block of a page of rows; false: it is none of this table.
bool block_in(const OurRelation& table, PageId page, uint32_t* block) {
  *block = *until_done(nullptr, [&] {
    engine::Heap heap(txns(), engine::RelationId{table.header});
    return heap.block_of(page);
  });
  return *block != engine::Heap::kNoBlock;
}

struct Owner {
  Oid relation = InvalidOid;
  bool has_block = false;
  uint32_t block = 0;
};

// Pages name their relation by the low bits of its header page's number: where memory nodes have headers of the same
// number, the map of a table decides, and of anything else it is not told.
Owner owner_of(PageId page, const PageHeader& header, const OurRelation* all, uint32_t count) {
  Owner owner;
  int found = 0;
  if (header.relation == 0 && header.type != PageType::kRelation && header.type != PageType::kBlinkMeta) return owner;
  for (uint32_t i = 0; i < count; ++i) {
    if (all[i].header == page) return {.relation = all[i].oid};
    if (uint32_t(all[i].header.number()) != header.relation) continue;
    if (header.type == PageType::kHeap) {
      Owner here{.relation = all[i].oid, .has_block = true};
      if (is_table(all[i]) && block_in(all[i], page, &here.block)) return here;
      continue;
    }
    owner.relation = all[i].oid;
    ++found;
  }
  return found == 1 ? owner : Owner{};
}

void put_page(ReturnSetInfo* result, NodeId node, const HotPage& hot, const OurRelation* all, uint32_t count,
              TimestampTz at) {
  const PageId page = hot.id();
  if (!node_pool()->coherence_pool().has(page)) return;
  const PageHeader header = header_of(page);
  const Owner owner = owner_of(page, header, all, count);
  Row<14> row;
  row.integer(node.value).integer(page.node().value).number(page.number());
  row.oid(owner.relation).text(type_name(header.type));
  if (owner.has_block)
    row.number(owner.block);
  else
    row.null();
  row.number(hot.messages()).number(hot.requests_sent).number(hot.requests_received).number(hot.pages_sent);
  row.number(hot.pages_received).number(hot.missed_max).truth(node == node_pool()->node()).time(at);
  row.put(result);
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

Datum gcl_stat_hot_pages_get(PG_FUNCTION_ARGS) {
  (void)pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  // First of all: what follows may send messages itself.
  auto* own = static_cast<HotPage*>(palloc(kOwnMax * sizeof(HotPage)));
  const uint32_t own_count = node_pool()->coherence_node().hot_pages(own, kOwnMax);
  const TimestampTz now = GetCurrentTimestamp();
  uint32_t count;
  const OurRelation* all = our_relations(&count);
  for (uint32_t i = 0; i < own_count; ++i) put_page(result, node_pool()->node(), own[i], all, count, now);
  engine::SampleRegistry registry = sample_registry(txns());
  for (uint32_t n = 0; n < node_pool()->nodes_max(); ++n) {
    const NodeId node{uint8_t(n)};
    const coherence::NodeInfo info = node_pool()->coherence_node().info(node);
    engine::Sample sample;
    if (node == node_pool()->node() || info.state == coherence::MemberState::kAbsent) continue;
    if (!registry.read(node, info.incarnation, &sample)) continue;
    for (uint32_t i = 0; i < Min(sample.hot_pages, engine::kSampleHotPages); ++i)
      put_page(result, node, sample.hot[i], all, count, sample.taken_us);
  }
  return Datum{0};
}

Datum gcl_stat_reset_hot_pages(PG_FUNCTION_ARGS) {
  (void)pool();
  node_pool()->coherence_node().reset_hot_pages();
  PG_RETURN_VOID();
}

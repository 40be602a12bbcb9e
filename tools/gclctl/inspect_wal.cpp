// gclctl inspect wal: the mini-transactions in the log of a primary.
#include <fmt/format.h>

#include <deque>

#include "bufmgr/inspect/page_text.hpp"
#include "bufmgr/log/record.hpp"
#include "coherence/base/ids.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/inspect.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/wal.hpp"

namespace gclctl {
namespace {

std::string lsn_text(uint64_t lsn) { return fmt::format("{:X}/{:X}", lsn >> 32, lsn & 0xffffffff); }

bool changes(std::span<const std::byte> data, uint64_t page) {
  bufmgr::RecordReader reader(data);
  while (const bufmgr::RecordPage* one = reader.next_page())
    if (one->page.raw == page) return true;
  return false;
}

int show(const fs::path& data, uint64_t page, int last) {
  uint64_t records = 0, others = 0;
  std::deque<std::string> newest;
  const uint64_t end = visit_wal(data, [&](const WalRecord& record) {
    const bool ours = record.rmgr == kResourceManager && (record.info & kKindMask) == kMiniTransaction;
    if (!ours || (page != coherence::PageId{}.raw && !changes(record.data, page))) return void(++others);
    ++records;
    if (last == 0) return;
    coherence::Text text;
    bufmgr::add_record(text, record.data);
    newest.push_back(fmt::format("{}  xid {}  {}", lsn_text(record.lsn), record.xid, text.c_str()));
    if (newest.size() > size_t(last)) newest.pop_front();
  });
  if (end == 0) fail("there is no log in {}", (data / "pg_wal").string());
  for (const std::string& record : newest) fmt::print("{}\n", record);
  fmt::print("{} mini-transactions, {} other records; the log ends at {}\n", records, others, lsn_text(end));
  return 0;
}

uint64_t raw_page(const std::string& name) {
  if (name.empty()) return coherence::PageId{}.raw;
  unsigned long long memory_node = 0, number = 0;
  int used = 0;
  const bool pair = sscanf(name.c_str(), "%llu:%llu%n", &memory_node, &number, &used) == 2;
  if (!pair) memory_node = 0;
  if ((!pair && sscanf(name.c_str(), "%llu%n", &number, &used) != 1) || size_t(used) != name.size() ||
      memory_node >= uint64_t(coherence::kMemoryNodesMax))
    fail("\"{}\" is not a page: write its number, as 42, or 2:42 for page 42 of memory node 2", name);
  return coherence::PageId::at({uint8_t(memory_node)}, number).raw;
}

}  // namespace

int inspect_wal(const std::string& dir, int node, const std::string& page, int last) {
  const uint64_t wanted = raw_page(page);
  const Cluster c = Cluster::load(dir);
  const fs::path data = c.data(c.chosen(node).front());
  return run_as(c.account, [&] { return show(data, wanted, last); });
}

}  // namespace gclctl

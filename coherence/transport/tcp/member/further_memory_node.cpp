#include "coherence/transport/tcp/member/further_memory_node.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "coherence/base/text.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/tcp/member/tools_look.hpp"

namespace coherence::tcp {

static constexpr int kLookAtCopyMs = 20;

void fill_header(const HeaderRecord& said, PoolHeader* header) noexcept {
  header->magic = kPoolMagic;
  header->format_version = said.format_version;
  header->block_size = said.block_size;
  header->nodes_max = said.nodes_max;
  header->memory_nodes = said.memory_nodes;
  header->state = said.clean != 0 ? PoolState::kClean : PoolState::kInUse;
  header->pool_id = said.pool_id;
  header->saves = said.saves;
  memcpy(header->compatibility, said.compatibility, sizeof header->compatibility);
}

FurtherMemoryNode::FurtherMemoryNode(PartKeeper& keeper, Log& log) : keeper_(keeper), log_(log), table_(new Table{}) {}

FurtherMemoryNode::~FurtherMemoryNode() {
  if (work_) work_->thread.join();
}

Status FurtherMemoryNode::begin(MemoryServer& server, const net::Endpoints& first, const std::string& address,
                                Problem* problem) {
  address_ = address;
  auto link = server.dial(net::Who::memory_node(MemoryNodeId{0}, 0), first, problem);
  if (!link) return link.error();
  first_ = *link;
  return {};
}

bool FurtherMemoryNode::admits(const net::Who& node) const noexcept {
  return known_ && node.id < table_->head.nodes_max && node.start != 0 && table_->node[node.id].admitted == node.start;
}

bool FurtherMemoryNode::some_admitted() const noexcept {
  return std::any_of(table_->node, table_->node + table_->head.nodes_max,
                     [](auto& node) { return node.admitted != 0; });
}

// tcp.admitted-by-table, tcp.tools-look
Status FurtherMemoryNode::may_run(const net::Link& link, const Batch& batch, Problem* problem) noexcept {
  const net::Who& who = link.peer();
  if (who.role == net::Role::kNode) {
    if (admits(who)) return {};
    return problem->set(Errc::kFenced, "a batch of an incarnation that is not in the pool (any more)");
  }
  if (known_ && table_->head.changer == who.start && !some_admitted()) return {};
  if (writes(batch)) return problem->set(Errc::kCorrupt, "a batch that writes, though nodes are in the pool");
  return {};
}

MemoryNodeFrame FurtherMemoryNode::what_it_has() const {
  const PoolHeader& header = keeper_.part_header();
  const PagePlaces places = header.places();
  MemoryNodeFrame has{.bytes = header.bytes,
                      .pages_bytes = header.region[kRegionPages].bytes,
                      .saves = header.saves,
                      .paths = has_paths() ? 1u : 0u,
                      .places = {places.words_at.offset(), places.pages_at.offset(), places.pages, {}}};
  put_text(address_.c_str(), has.places.address);
  return has;
}

void FurtherMemoryNode::begun(net::Link& link) {
  const net::Who& who = link.peer();
  if (&link == first_) {
    const MemoryNodeFrame has = what_it_has();
    if (!link.send(kMemoryNodeFrame, bytes_of(has))) link.end("it does not take what is said");
    return;
  }
  if (who.role == net::Role::kMemoryNode) return link.end("memory nodes speak with number 0 alone");
  links_.push_back(&link);
  if (who.role != net::Role::kNode || admits(who)) return;
  Text text;
  log_.line(text.add("ends the link to %s, which memory node 0 does not admit", who.name().text).c_str());
  link.end("this incarnation of the node is not in the pool, or was cut off");
}

// tcp.followers-end-with-link
void FurtherMemoryNode::over(net::Link& link) {
  if (&link != first_) {
    std::erase(links_, &link);
    return;
  }
  first_ = nullptr;
  over_ = true;
  known_ = false;
  why_.write("the link to memory node 0 is over: %.400s", link.reason());
  for (net::Link* one : std::vector(links_)) cut_off(*one, "this memory node has lost memory node 0");
}

Status FurtherMemoryNode::frame(net::Link& link, uint16_t type, std::span<const std::byte> payload, Problem* problem) {
  if (&link != first_ || (type != kTableFrame && type != kOrderFrame))
    return problem->set(Errc::kCorrupt, "a frame of type %u", unsigned{type});
  if (type == kTableFrame) {
    GCL_TRY(decode_table(payload, table_.get(), problem));
    take_table();
    return {};
  }
  OrderFrame order;
  GCL_TRY(decode_order(payload, &order, problem));
  return take_order(order, problem);
}

// tcp.admitted-by-table
void FurtherMemoryNode::take_table() {
  known_ = true;
  for (net::Link* link : std::vector(links_)) {
    const net::Who& who = link->peer();
    if (who.role != net::Role::kNode || link->over() || admits(who)) continue;
    Text text;
    log_.line(text.add("ends the link to %s, which memory node 0 does not admit any more", who.name().text).c_str());
    cut_off(*link, "this incarnation of the node was cut off, or has left");
  }
}

Status FurtherMemoryNode::take_order(const OrderFrame& order, Problem* problem) {
  if (work_) return problem->set(Errc::kCorrupt, "an order before it has heard of the last one");
  if (some_admitted()) return problem->set(Errc::kCorrupt, "that a copy is made while nodes are in the pool");
  work_ = std::make_unique<Work>();
  Work& work = *work_;
  work.order = order;
  work.thread = std::thread([this, &work] {
    work.status = work.order.order == Order::kWrite ? keeper_.write_copy(work.order.saves, &work.words)
                                                    : keeper_.place_copy(&work.words);
    work.ended.store(true, std::memory_order_release);  // pairs with after_pass()
  });
  return {};
}

void FurtherMemoryNode::after_pass() {
  if (!work_ || !work_->ended.load(std::memory_order_acquire)) return;  // pairs with take_order()
  work_->thread.join();
  DoneFrame done{.order = work_->order.order, .error = uint32_t(work_->status.error()), .saves = work_->order.saves};
  if (!work_->status) put_text(work_->words.text, done.problem);
  work_.reset();
  if (first_ != nullptr && !first_->send(kDoneFrame, bytes_of(done))) first_->end("it does not take what is said");
}

int FurtherMemoryNode::wait_ms() const noexcept { return work_ ? kLookAtCopyMs : -1; }

}  // namespace coherence::tcp

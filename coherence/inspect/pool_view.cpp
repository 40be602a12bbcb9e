#include "coherence/inspect/pool_view.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace coherence {

Result<std::unique_ptr<PoolView>> PoolView::open(const char* path, Problem* problem) {
  std::unique_ptr<PoolView> view(new PoolView);
  view->path_ = path;
  auto first = std::make_unique<Part>();
  first->file = std::make_unique<File>(::open(path, O_RDONLY | O_CLOEXEC));
  const int fd = first->file->fd();
  if (fd < 0)
    return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot read %s: %s", path, strerror(errno));
  GCL_TRY(read_header(fd, path, &view->header_, problem));
  GCL_TRY(check_header(view->header_, nullptr, path, problem));
  const auto& table = view->header_.region[kRegionNodeTable];
  if (table.bytes < sizeof view->table_ ||
      !read_all(fd, reinterpret_cast<std::byte*>(&view->table_), sizeof view->table_, table.offset))
    return problem->set(Errc::kCorrupt, "%s has no table of its nodes", path);
  view->part_[0] = std::move(first);
  view->part_[0]->places = view->header_.places();
  return view;
}

PoolView::Part* PoolView::part(MemoryNodeId n) {
  if (n.value >= header_.memory_nodes.load(std::memory_order_relaxed)) return nullptr;
  auto& part = part_[n.value];
  if (part) return part.get();
  const MemoryPath path(path_.c_str(), n.value);
  auto file = std::make_unique<File>(::open(path.text, O_RDONLY | O_CLOEXEC));
  auto header = std::make_unique<PoolHeader>();
  Problem ignored;
  if (!file->open() || !read_header(file->fd(), path.text, header.get(), &ignored)) return nullptr;
  if (header->pool_id != header_.pool_id || header->memory_node != n.value) return nullptr;
  part = std::make_unique<Part>();
  part->file = std::move(file);
  part->places = header->places();
  return part.get();
}

RegionExtent PoolView::region(int index) const {
  const auto& r = header_.region[index];
  return {PoolAddress::at(MemoryNodeId{0}, r.offset), r.bytes};
}

uint64_t PoolView::pages(MemoryNodeId n) {
  const Part* there = part(n);
  return there ? there->places.pages : 0;
}

bool PoolView::read(PoolAddress at, void* to, uint64_t bytes) {
  const Part* there = part(at.node());
  return there && read_all(there->file->fd(), static_cast<std::byte*>(to), bytes, at.offset());
}

std::optional<uint64_t> PoolView::word(PoolAddress at) {
  uint64_t value;
  return read(at, &value, sizeof value) ? std::optional(value) : std::nullopt;
}

std::optional<LatchWord> PoolView::latch(PageId p) {
  const auto value = word(part(p.node())->places.word(p.number()));
  return value ? std::optional(LatchWord{*value}) : std::nullopt;
}

bool PoolView::page(PageId p, std::byte* to) { return read(part(p.node())->places.page(p.number()), to, kPageSize); }

void ViewMemory::post(Batch* const* batches, int count) {
  for (int b = 0; b < count; b++) {
    Batch& batch = *batches[b];
    for (int i = 0; i < batch.size(); i++) {
      Op& op = batch.op(i);
      VERIFY(op.verb == Verb::kRead || op.verb == Verb::kLoad);
      void* const to = op.verb == Verb::kRead ? op.local : &op.old;
      const uint64_t bytes = op.verb == Verb::kRead ? op.bytes : sizeof op.old;
      if (!pool_.read(op.at, to, bytes)) memset(to, 0, bytes);
    }
    batch.state.store(BatchState::kDone, std::memory_order_release);
  }
}

}  // namespace coherence

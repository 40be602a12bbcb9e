#include "tools/gclctl/wal.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bufmgr/log/record.hpp"
#include "coherence/base/crc32c.hpp"
#include "coherence/pool/memory_file.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr uint16_t kPageMagic = 0xd110;  // PostgreSQL 15
constexpr uint32_t kWalPage = 8192;
constexpr uint16_t kContinues = 1;            // the page begins with the rest of a record
constexpr uint32_t kRecordMax = 1020u << 20;  // XLogRecordMaxSize, about

struct PageHead {
  uint16_t magic, info;
  uint32_t timeline;
  uint64_t address;
  uint32_t rest;  // of a record that began before
  uint32_t padding;
};
struct FirstPageHead : PageHead {
  uint64_t system;
  uint32_t segment_bytes, block_bytes;
};
static_assert(sizeof(PageHead) == 24 && sizeof(FirstPageHead) == 40);

struct RecordHead {
  uint32_t bytes, xid;
  uint64_t previous;
  uint8_t info, rmgr;
  uint16_t padding;
  uint32_t crc;
};
static_assert(sizeof(RecordHead) == 24);

constexpr uint64_t aligned(uint64_t n) { return (n + 7) / 8 * 8; }

// The log's bytes without its pages' heads.
class Stream {
 public:
  Stream(fs::path directory, uint32_t timeline, uint64_t segment_bytes, uint64_t start)
      : directory_(std::move(directory)), timeline_(timeline), segment_bytes_(segment_bytes), at_(start) {}
  uint64_t at() const { return at_; }
  void to(uint64_t position) { at_ = position; }
  uint64_t next_segment() const { return (at_ + segment_bytes_ - 1) / segment_bytes_ * segment_bytes_; }
  // False: the log ends before.  `to` may be null.
  bool take(void* to, uint64_t bytes) {
    auto* out = static_cast<std::byte*>(to);
    while (bytes > 0) {
      const PageHead* head = page();
      if (!head) return false;
      if (at_ % kWalPage == 0) at_ += head_bytes(at_);
      const uint64_t count = std::min<uint64_t>(bytes, kWalPage - at_ % kWalPage);
      if (out) memcpy(out, page_ + at_ % kWalPage, count), out += count;
      at_ += count, bytes -= count;
    }
    return true;
  }
  // The page's head at the position; null: it is not this log's.
  const PageHead* page() {
    const uint64_t address = at_ / kWalPage * kWalPage;
    if (page_at_ != address && !read(address)) return nullptr;
    return reinterpret_cast<const PageHead*>(page_);
  }
  uint64_t head_bytes(uint64_t address) const {
    return address % segment_bytes_ == 0 ? sizeof(FirstPageHead) : sizeof(PageHead);
  }

 private:
  bool read(uint64_t address) {
    const uint64_t segment = address / segment_bytes_;
    if (!file_ || segment_ != segment) {
      const uint64_t per_id = (uint64_t{1} << 32) / segment_bytes_;
      const fs::path path =
          directory_ / fmt::format("{:08X}{:08X}{:08X}", timeline_, segment / per_id, segment % per_id);
      file_ = std::make_unique<coherence::File>(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      segment_ = segment;
    }
    page_at_ = ~uint64_t{0};
    if (!file_->open() || !coherence::read_all(file_->fd(), page_, kWalPage, address % segment_bytes_)) return false;
    const auto* head = reinterpret_cast<const PageHead*>(page_);
    if (head->magic != kPageMagic || head->address != address) return false;
    page_at_ = address;
    return true;
  }

  fs::path directory_;
  uint32_t timeline_;
  uint64_t segment_bytes_, at_, segment_ = 0, page_at_ = ~uint64_t{0};
  std::unique_ptr<coherence::File> file_;
  alignas(8) std::byte page_[kWalPage];
};

// The oldest segment of the newest timeline, and what its first page says.
struct Start {
  uint32_t timeline;
  FirstPageHead head;
};
std::optional<Start> find_start(const fs::path& directory) {
  std::string oldest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (name.size() != 24 || name.find_first_not_of("0123456789ABCDEF") != std::string::npos) continue;
    const int newer = oldest.empty() ? 1 : name.compare(0, 8, oldest, 0, 8);
    if (newer > 0 || (newer == 0 && name < oldest)) oldest = name;
  }
  if (oldest.empty()) return std::nullopt;
  const fs::path path = directory / oldest;
  coherence::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Start start{.timeline = uint32_t(std::stoul(oldest.substr(0, 8), nullptr, 16)), .head = {}};
  if (!file.open()) fail("cannot read {}: {}", path.string(), strerror(errno));
  if (!coherence::read_all(file.fd(), reinterpret_cast<std::byte*>(&start.head), sizeof start.head, 0) ||
      start.head.magic != kPageMagic || start.head.block_bytes != kWalPage || start.head.segment_bytes < (1u << 20) ||
      (start.head.segment_bytes & (start.head.segment_bytes - 1)) != 0)
    fail("{} is no log of PostgreSQL 15", path.string());
  return start;
}

// The main data of a record without blocks, as all of gcl's are; empty for others.
std::span<const std::byte> main_data(std::span<const std::byte> body) {
  for (size_t at = 0; at < body.size();) {
    const auto id = uint8_t(body[at++]);
    uint32_t bytes = 0;
    if (id == 253) {  // the origin
      at += 2;
    } else if (id == 252) {  // the xid of the top transaction
      at += 4;
    } else if (id == 255 && at < body.size()) {
      bytes = uint8_t(body[at++]);
      return at + bytes == body.size() ? body.subspan(at) : std::span<const std::byte>();
    } else if (id == 254 && at + 4 <= body.size()) {
      memcpy(&bytes, &body[at], 4);
      at += 4;
      return at + bytes == body.size() ? body.subspan(at) : std::span<const std::byte>();
    } else {
      return {};
    }
  }
  return {};
}

bool sound(const RecordHead& head, std::span<const std::byte> body) {
  const uint32_t crc = coherence::crc32c(0, body.data(), body.size());
  return coherence::crc32c(crc, &head, offsetof(RecordHead, crc)) == head.crc;
}

}  // namespace

uint64_t visit_wal(const fs::path& data, const std::function<void(const WalRecord&)>& visit) {
  const fs::path directory = data / "pg_wal";
  const auto start = find_start(directory);
  if (!start) return 0;
  Stream stream(directory, start->timeline, start->head.segment_bytes, start->head.address);
  if (start->head.info & kContinues && !stream.take(nullptr, start->head.rest)) return start->head.address;
  std::vector<std::byte> body, copy;
  for (uint64_t previous = 0, end = 0;;) {
    stream.to(aligned(stream.at()));
    const PageHead* page = stream.page();
    if (!page) return end;
    if (stream.at() % kWalPage == 0) stream.to(stream.at() + stream.head_bytes(stream.at()));
    WalRecord record{.lsn = stream.at(), .xid = 0, .rmgr = 0, .info = 0, .data = {}};
    RecordHead head;
    if (!stream.take(&head.bytes, sizeof head.bytes) || head.bytes < sizeof head || head.bytes > kRecordMax) return end;
    if (!stream.take(&head.xid, sizeof head - sizeof head.bytes)) return end;
    if (previous != 0 && head.previous != previous) return end;
    body.resize(head.bytes - sizeof head);
    if (!stream.take(body.data(), body.size()) || !sound(head, body)) return end;
    const auto main = main_data(body);
    copy.assign(main.begin(), main.end());
    record.xid = head.xid, record.rmgr = head.rmgr, record.info = head.info, record.data = copy;
    visit(record);
    previous = record.lsn;
    end = aligned(stream.at());
    if (head.rmgr == 0 && (head.info & 0xf0) == 0x40) stream.to(stream.next_segment());  // XLOG_SWITCH
  }
}

}  // namespace gclctl

#include "tools/gclctl/wal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bufmgr/log/record.hpp"
#include "coherence/base/crc32c.hpp"
#include "coherence/region/memory_file.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/wal_segment.hpp"

namespace gclctl {
namespace wal_file {

constexpr uint16_t kPageMagic = 0xd110;  // PostgreSQL 15
constexpr uint32_t kWalPage = 8192;
constexpr uint16_t kContinues = 1;            // the page begins with the rest of a record
constexpr uint16_t kOverwrites = 8;           // the rest of a record should be here, which a crash has cut off
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
  void to(uint64_t position) {
    at_ = position;
    cut_off_ = 0;
  }
  uint64_t next_segment() const { return (at_ + segment_bytes_ - 1) / segment_bytes_ * segment_bytes_; }
  // False: the log ends before, or a crash has cut off the record; then cut_off() says where it goes on.  `to` may be
  // null.
  bool take(void* to, uint64_t bytes) {
    auto* out = static_cast<std::byte*>(to);
    while (bytes > 0) {
      const PageHead* head = page();
      if (!head) return false;
      if (at_ % kWalPage == 0) {
        cut_off_ = (head->info & kOverwrites) != 0 ? at_ : 0;
        if ((head->info & kContinues) == 0) return false;
        at_ += head_bytes(at_);
      }
      const uint64_t count = std::min<uint64_t>(bytes, kWalPage - at_ % kWalPage);
      if (out) memcpy(out, page_ + at_ % kWalPage, count), out += count;
      at_ += count, bytes -= count;
    }
    return true;
  }
  uint64_t cut_off() const { return cut_off_; }  // 0: it was not
  // The page's head at the position; null: it is not this log's.
  const PageHead* page() {
    const uint64_t address = at_ / kWalPage * kWalPage;
    if (page_at_ != address && !read(address)) return nullptr;
    return reinterpret_cast<const PageHead*>(page_);
  }
  void sync(uint64_t from, uint64_t upto) const {
    for (uint64_t segment = from / segment_bytes_; segment * segment_bytes_ < upto; ++segment) {
      const fs::path path = path_of(segment);
      const coherence::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file.open() || fsync(file.fd()) != 0) fail("cannot sync {}: {}", path.string(), strerror(errno));
    }
  }
  // Whether a later segment than the one with that position has been begun (gclctl.hole-is-no-end).
  bool goes_on_behind(uint64_t position) const {
    const uint64_t stopped = position / segment_bytes_;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      const std::optional<uint64_t> segment = segment_of(entry.path().filename());
      if (segment && *segment > stopped && has_page(*segment)) return true;
    }
    return false;
  }
  // What was read may have been written since.
  void read_anew() {
    page_at_ = ~uint64_t{0};
    file_.reset();
  }
  uint64_t head_bytes(uint64_t address) const {
    return address % segment_bytes_ == 0 ? sizeof(FirstPageHead) : sizeof(PageHead);
  }

 private:
  fs::path path_of(uint64_t segment) const {
    const uint64_t per_id = (uint64_t{1} << 32) / segment_bytes_;
    return directory_ / fmt::format("{:08X}{:08X}{:08X}", timeline_, segment / per_id, segment % per_id);
  }
  // Of this timeline.
  std::optional<uint64_t> segment_of(const std::string& name) const {
    if (!is_segment_name(name) || std::stoul(name.substr(0, 8), nullptr, 16) != timeline_) return std::nullopt;
    const uint64_t per_id = (uint64_t{1} << 32) / segment_bytes_;
    return std::stoul(name.substr(8, 8), nullptr, 16) * per_id + std::stoul(name.substr(16), nullptr, 16);
  }
  // A segment that is kept for later use has pages of an earlier one, or none.
  bool has_page(uint64_t segment) const {
    const fs::path path = path_of(segment);
    const coherence::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.open() && errno == ENOENT) return false;
    PageHead head;
    for (uint64_t at = 0; at < segment_bytes_; at += kWalPage) {
      if (!file.open() || !coherence::read_all(file.fd(), reinterpret_cast<std::byte*>(&head), sizeof head, at)) {
        if (errno != ENODATA) fail("cannot read {}: {}", path.string(), strerror(errno));
        break;
      }
      if (head.magic == kPageMagic && head.address == segment * segment_bytes_ + at) return true;
    }
    return false;
  }
  // False: there is no such page.  Fails if it cannot be read.
  bool read(uint64_t address) {
    const uint64_t segment = address / segment_bytes_;
    page_at_ = ~uint64_t{0};
    if (!file_ || segment_ != segment) {
      file_ = std::make_unique<coherence::File>(open(path_of(segment).c_str(), O_RDONLY | O_CLOEXEC));
      segment_ = segment;
      if (!file_->open() && errno != ENOENT) fail("cannot read {}: {}", path_of(segment).string(), strerror(errno));
    }
    if (!file_->open()) return false;
    if (!coherence::read_all(file_->fd(), page_, kWalPage, address % segment_bytes_)) {
      if (errno != ENODATA) fail("cannot read {}: {}", path_of(segment).string(), strerror(errno));
      return false;  // it is shorter
    }
    const auto* head = reinterpret_cast<const PageHead*>(page_);
    if (head->magic != kPageMagic || head->address != address) return false;
    page_at_ = address;
    return true;
  }

  fs::path directory_;
  uint32_t timeline_;
  uint64_t segment_bytes_, at_, segment_ = 0, cut_off_ = 0, page_at_ = ~uint64_t{0};
  std::unique_ptr<coherence::File> file_;
  alignas(8) std::byte page_[kWalPage];
};

// The oldest segment of the newest timeline, and what its first page says.
struct Start {
  uint32_t timeline;
  FirstPageHead head;
};
// Its server may remove it between the two looks: then the next one is the oldest.
std::optional<Start> find_start(const fs::path& directory, int looks = 10) {
  std::string oldest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    if (!is_segment_name(name)) continue;
    const int newer = oldest.empty() ? 1 : name.compare(0, 8, oldest, 0, 8);
    if (newer > 0 || (newer == 0 && name < oldest)) oldest = name;
  }
  if (oldest.empty()) return std::nullopt;
  const fs::path path = directory / oldest;
  coherence::File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Start start{.timeline = uint32_t(std::stoul(oldest.substr(0, 8), nullptr, 16)), .head = {}};
  if (!file.open() && errno == ENOENT && looks > 0) return find_start(directory, looks - 1);
  if (!file.open()) fail("cannot read {}: {}", path.string(), strerror(errno));
  const bool read = coherence::read_all(file.fd(), reinterpret_cast<std::byte*>(&start.head), sizeof start.head, 0);
  if (!read && errno != ENODATA) fail("cannot read {}: {}", path.string(), strerror(errno));
  if (!read || start.head.magic != kPageMagic || start.head.block_bytes != kWalPage ||
      start.head.segment_bytes < (1u << 20) || (start.head.segment_bytes & (start.head.segment_bytes - 1)) != 0)
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

}  // namespace wal_file

class WalReader::Log {
 public:
  Log(const fs::path& directory, const wal_file::Start& start)
      : stream_(directory, start.timeline, start.head.segment_bytes, start.head.address), first_(start.head.address) {
    if ((start.head.info & wal_file::kContinues) == 0 || stream_.take(nullptr, start.head.rest)) return;
    ended_ = true;
    end_ = start.head.address;
  }
  uint64_t first() const { return first_; }
  uint64_t end() const { return end_; }
  bool ended() const { return ended_; }
  void to(uint64_t position) {
    stream_.to(position);
    previous_ = 0;
    ended_ = false;
  }
  void sync(uint64_t position) const { stream_.sync(position, end_); }

  bool next(WalRecord* record) {
    while (!ended_) {
      const uint64_t began = stream_.at();
      if (read(record)) return true;
      const uint64_t goes_on = stream_.cut_off();
      ended_ = goes_on == 0;
      if (ended_) goes_on_at_ = began;
      if (!ended_) stream_.to(goes_on);
    }
    return false;
  }
  // After the look at later segments what ended the log is read once more: its server may have written it since.
  std::optional<uint64_t> hole() {
    while (ended_ && stream_.goes_on_behind(stream_.at())) {
      const uint64_t stopped = stream_.at();
      if (goes_on_at_ == 0 || (!comes_further() && stream_.at() == stopped)) return stopped;
    }
    return std::nullopt;
  }

 private:
  // Whether the record that ended the log is whole by now; then it is the next one.
  bool comes_further() {
    const uint64_t before = previous_, end = end_;
    WalRecord record;
    stream_.read_anew();
    stream_.to(goes_on_at_);
    ended_ = false;
    const bool more = next(&record);
    previous_ = before, end_ = end;
    if (more) stream_.to(goes_on_at_);
    return more;
  }
  bool read(WalRecord* record) {
    stream_.to(wal_file::aligned(stream_.at()));
    if (!stream_.page()) return false;
    if (stream_.at() % wal_file::kWalPage == 0) stream_.to(stream_.at() + stream_.head_bytes(stream_.at()));
    const uint64_t lsn = stream_.at();
    wal_file::RecordHead head;
    if (!stream_.take(&head.bytes, sizeof head.bytes) || head.bytes < sizeof head || head.bytes > wal_file::kRecordMax)
      return false;
    if (!stream_.take(&head.xid, sizeof head - sizeof head.bytes)) return false;
    if (previous_ != 0 && head.previous != previous_) return false;
    body_.resize(head.bytes - sizeof head);
    if (!stream_.take(body_.data(), body_.size()) || !wal_file::sound(head, body_)) return false;
    const auto main = wal_file::main_data(body_);
    main_.assign(main.begin(), main.end());
    *record = {.lsn = lsn, .xid = head.xid, .rmgr = head.rmgr, .info = head.info, .crc = head.crc, .data = main_};
    previous_ = lsn;
    end_ = wal_file::aligned(stream_.at());
    if (head.rmgr == 0 && (head.info & 0xf0) == 0x40) stream_.to(stream_.next_segment());  // XLOG_SWITCH
    return true;
  }

  wal_file::Stream stream_;
  const uint64_t first_;
  uint64_t previous_ = 0, end_ = 0;
  uint64_t goes_on_at_ = 0;  // where what ended the log begins
  bool ended_ = false;
  std::vector<std::byte> body_, main_;
};

WalReader::WalReader(const fs::path& data) {
  const fs::path directory = data / "pg_wal";
  if (const auto start = wal_file::find_start(directory)) log_ = std::make_unique<Log>(directory, *start);
}
WalReader::~WalReader() = default;
uint64_t WalReader::first() const { return log_ ? log_->first() : 0; }
uint64_t WalReader::end() const { return log_ ? log_->end() : 0; }
bool WalReader::has_ended() const { return !log_ || log_->ended(); }
std::optional<uint64_t> WalReader::hole() { return log_ ? log_->hole() : std::nullopt; }
void WalReader::to(uint64_t position) {
  if (log_) log_->to(position);
}
void WalReader::sync(uint64_t position) const {
  if (log_) log_->sync(position);
}
bool WalReader::next(WalRecord* record) { return log_ && log_->next(record); }

uint64_t visit_wal(const fs::path& data, const std::function<void(const WalRecord&)>& visit) {
  WalReader reader(data);
  WalRecord record;
  while (reader.next(&record)) visit(record);
  return reader.end();
}

}  // namespace gclctl

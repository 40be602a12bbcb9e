#include "extension/engine/check/page_check.hpp"

#include <algorithm>

#include "bufmgr/base/page.hpp"

namespace engine {

bool check_header(const std::byte* page, PageType type, uint32_t relation, const FindingPlace& at, Findings& findings) {
  const PageHeader& header = HeapPage(page).header();
  if (header.type != type) {
    findings.add(at, "page is of type %u instead of %u", unsigned(header.type), unsigned(type));
    return false;
  }
  if (header.relation != relation)
    findings.add(at, "page says that it belongs to relation %u instead of %u", header.relation, relation);
  if (header.version == 0) findings.add(at, "page has content, but no change has ever been made to it");
  if (header.checksum != 0) findings.add(at, "page has a checksum, which only pages on durable storage have");
  return header.relation == relation;
}

namespace {

constexpr uint32_t kUnits = coherence::kPageSize / 8;

// One heap page and what has been seen of it.
class HeapPageCheck {
 public:
  HeapPageCheck(const std::byte* page, uint16_t attributes, const FindingPlace& at, Findings& findings)
      : view_(page), attributes_(attributes), at_(at), findings_(findings) {}

  bool run() {
    if (!ends_are_sane()) return false;
    bool sound = true;
    for (uint16_t n = 1; n <= view_.lines(); ++n) sound &= line_is_sane(n);
    if (sound) check_space();
    return sound;
  }

 private:
  FindingPlace line_at(uint16_t n) const { return {at_.page, at_.block, n}; }

  bool ends_are_sane() {
    const PageHeader& header = view_.header();
    const bool sane = header.special == coherence::kPageSize && header.lower >= bufmgr::kPageBody &&
                      (header.lower - bufmgr::kPageBody) % sizeof(Line) == 0 && view_.lines() <= kLinesMax &&
                      header.lower <= header.upper && header.upper <= header.special && header.upper % 8 == 0;
    if (!sane)
      findings_.add(at_, "line pointers end at %u, rows begin at %u and end at %u", unsigned(header.lower),
                    unsigned(header.upper), unsigned(header.special));
    if ((header.flags & ~(HeapPage::kHasUnused | HeapPage::kHasHoles)) != 0)
      findings_.add(at_, "page has unknown flags %u", unsigned(header.flags));
    return sane;
  }

  bool line_is_sane(uint16_t n) {
    const Line line = view_.line(n);
    switch (line.state()) {
      case LineState::kUnused:
        if ((view_.header().flags & HeapPage::kHasUnused) == 0)
          findings_.add(line_at(n), "line pointer is unused, but the page says that none is");
        return is_plain(n, line, Line::unused());
      case LineState::kDead:
        return is_plain(n, line, Line::dead());
      case LineState::kRedirect:
        return redirect_is_sane(n, line);
      case LineState::kNormal:
      default:
        return row_is_sane(n, line);
    }
  }

  bool is_plain(uint16_t n, Line line, Line plain) {
    if (line.raw != plain.raw)
      findings_.add(line_at(n), "line pointer without a row has offset %u and length %u", line.offset(), line.bytes());
    return line.raw == plain.raw;
  }

  // (heap.prune-whole-prefix) what is left of a chain begins with a version that no index entry names.
  bool redirect_is_sane(uint16_t n, Line line) {
    const uint32_t to = line.offset();
    if (to < 1 || to > view_.lines()) {
      findings_.add(line_at(n), "line pointer redirection to item at offset %u exceeds maximum offset %u", to,
                    unsigned(view_.lines()));
      return false;
    }
    const Line target = view_.line(uint16_t(to));
    if (!target.normal())
      findings_.add(line_at(n), "line pointer redirection to item at offset %u, which is no row", to);
    else if (target.sane() && !view_.row_header(uint16_t(to)).heap_only())
      findings_.add(line_at(n), "line pointer redirection to item at offset %u, which begins a chain of its own", to);
    else
      return true;
    return false;
  }

  bool row_is_sane(uint16_t n, Line line) {
    if (!line.sane() || line.offset() < view_.header().upper) {
      findings_.add(line_at(n), "line pointer to offset %u with length %u is outside of the page's rows", line.offset(),
                    line.bytes());
      return false;
    }
    for (uint32_t unit = line.offset() / 8, end = unit + align8(line.bytes()) / 8; unit < end; ++unit) {
      if (owner_[unit] != 0) {
        findings_.add(line_at(n), "row at offset %u overlaps that of item %u", line.offset(), unsigned(owner_[unit]));
        return false;
      }
      owner_[unit] = n;
    }
    taken_ += align8(line.bytes());
    return header_is_sane(n, line.bytes());
  }

  bool header_is_sane(uint16_t n, uint32_t bytes) {
    const RowHeader row = view_.row_header(n);
    if (row.natts() > attributes_) {
      findings_.add(line_at(n), "number of attributes %u exceeds maximum expected for table %u", unsigned(row.natts()),
                    unsigned(attributes_));
      return false;
    }
    const uint32_t nulls = row.flags() & kHasNull ? (row.natts() + 7u) / 8 : 0;
    const uint32_t data = align8(kRowHeaderBytes + nulls);
    if (bytes < data) {
      findings_.add(line_at(n), "data begins at offset %u beyond the row's length %u", data, bytes);
      return false;
    }
    return true;
  }

  void check_space() {
    const PageHeader& header = view_.header();
    const uint32_t free = uint32_t{header.special} - header.upper - taken_;
    if (free != 0 && (header.flags & HeapPage::kHasHoles) == 0)
      findings_.add(at_, "%u bytes among the rows are free, but the page says that none are", free);
  }

  HeapPage view_;
  uint16_t attributes_;
  FindingPlace at_;
  Findings& findings_;
  uint32_t taken_ = 0;
  uint16_t owner_[kUnits] = {};  // of each 8 bytes: the line whose row they are
};

}  // namespace

bool check_heap_page(const std::byte* page, uint16_t attributes, const FindingPlace& at, Findings& findings) {
  return HeapPageCheck(page, attributes, at, findings).run();
}

}  // namespace engine

// CheckReport: findings become rows, and operations that end with damage become findings.
#pragma once

#include "extension/engine/check/finding.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/rows.hpp"

namespace gcl {

class CheckReport {
 public:
  explicit CheckReport(ReturnSetInfo* rows) : rows_(rows) {}
  // What is found from now on is of this relation.
  void begin(Relation relation) {
    relation_ = relation;
    findings_.clear();
  }
  engine::Findings& findings() { return findings_; }
  void add(const engine::FindingPlace& at, const char* text) {
    findings_.add(at, "%s", text);
    flush();
  }
  // Runs a step of a check, and tells what it found.  False: what it wanted to read is damaged beyond that.
  template <class Operation>
  bool step(const engine::FindingPlace& at, Operation operation) {
    for (;;) {
      require_unfenced();
      findings_.clear();
      const coherence::Status done = operation();
      count_page_accesses(relation_);
      const bool damaged =
          !done && (done.error() == coherence::Errc::kCorrupt || done.error() == coherence::Errc::kNotFound);
      if (!done && !damaged) {
        raise_unless_interrupted(done.error(), relation_);
        continue;
      }
      if (damaged) findings_.add(at, "page, or one that it leads to, cannot be read (%s)", errc_name(done.error()));
      flush();
      return !damaged;
    }
  }

 private:
  void flush();
  ReturnSetInfo* rows_;
  Relation relation_ = nullptr;
  engine::Findings findings_;
};

}  // namespace gcl

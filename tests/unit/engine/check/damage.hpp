// Damage: changes bytes of a page as no session of the product would, and says what a checker tells of it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/check/finding.hpp"

namespace engine_test {

inline void damage(bufmgr::BufferPool& pool, bufmgr::Session& session, coherence::PageId page, uint32_t offset,
                   const void* bytes, uint32_t count) {
  bufmgr::MiniTransaction change(pool, session);
  ASSERT_TRUE(change.reserve(coherence::kPageSize + 64).ok());
  auto guard = pool.fix_exclusive(session, page);
  ASSERT_TRUE(guard.ok());
  change.join(*guard);
  change.write(*guard, offset, bytes, count);
  change.commit();
}

template <class T>
void damage(bufmgr::BufferPool& pool, bufmgr::Session& session, coherence::PageId page, size_t offset, const T& value) {
  damage(pool, session, page, uint32_t(offset), &value, sizeof value);
}

// Where and what, one line each.
inline std::string told(const engine::Findings& findings) {
  std::string text;
  for (int i = 0; i < findings.count(); ++i) text += std::string(findings[i].text) + "\n";
  return text;
}

inline void expect_told(const std::string& told, const std::string& what) {
  EXPECT_NE(told.find(what), std::string::npos) << "\"" << what << "\" is not in: " << told;
}

}  // namespace engine_test

#include "extension/pg/check/check_report.hpp"

extern "C" {
#include "catalog/pg_class.h"
}

namespace gcl {

void CheckReport::flush() {
  const bool index = relation_->rd_rel->relkind == RELKIND_INDEX;
  for (int i = 0; i < findings_.count(); ++i) {
    const engine::FindingPlace& at = findings_[i].at;
    Row<7> row;
    row.oid(RelationGetRelid(relation_));
    if (at.page.valid())
      row.integer(at.page.node().value).number(at.page.number());
    else
      row.null(2);
    if (at.block != engine::FindingPlace::kNoBlock)
      row.number(at.block);
    else
      row.null();
    if (at.item != 0)
      row.integer(at.item);
    else
      row.null();
    row.text(unpack_sql_state(index ? ERRCODE_INDEX_CORRUPTED : ERRCODE_DATA_CORRUPTED)).text(findings_[i].text);
    row.put(rows_);
  }
  if (findings_.dropped() != 0)
    ereport(WARNING, errmsg("%d more findings of one page of relation \"%s\" are left out", findings_.dropped(),
                            RelationGetRelationName(relation_)));
  findings_.clear();
}

}  // namespace gcl

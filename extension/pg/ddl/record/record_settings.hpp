// Settings of the coordinator that a record carries: those that change what a statement means, and those whose value it
// takes (SET ... FROM CURRENT).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// DdlSetting*, as they are now.
List* settings_for(const Node* statement);
// Until the end of the nest level of settings that the caller has begun.
void take_settings(const DdlRecord* record);
void take_setting(const char* name, const char* value);

// The user of a session (role, session_authorization) is no setting of a replay: it is the coordinator's
// (ddl.no-user-code).
bool is_session_user_setting(const char* setting);
// True: the statement stores one, for a function, role or database.  FROM CURRENT becomes the coordinator's.
bool stores_session_user(Node* statement, const DdlRecord* record);

}  // namespace gcl

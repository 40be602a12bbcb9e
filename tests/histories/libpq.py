"""A connection through libpq: a client that costs little beside the server.  A psql for each session, as session.py has, costs
more than most of the transactions here.

    connection = Connection(dsn)
    connection.run("BEGIN; SELECT 1; SELECT 2")     # one message; the rows of the last statement, each a tuple of strings or None

Not for several threads at a time.  SqlError: what the server says, with its SQLSTATE.  Hang: no answer within ANSWER_MAX.
"""
import ctypes
import select

from session import ANSWER_MAX, Hang, SqlError

BAD = (5, 7)  # PGRES_BAD_RESPONSE, PGRES_FATAL_ERROR
STATE = ord("C")  # PG_DIAG_SQLSTATE


def library():
    """libpq, with the types of what is used here: all take and return pointers, numbers and C's strings."""
    lib, pointer, number, text = ctypes.CDLL("libpq.so.5"), ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    for name, result, *arguments in (
            ("PQconnectdb", pointer, text), ("PQstatus", number, pointer), ("PQerrorMessage", text, pointer), ("PQfinish", None, pointer),
            ("PQsocket", number, pointer), ("PQsendQuery", number, pointer, text), ("PQisBusy", number, pointer),
            ("PQconsumeInput", number, pointer), ("PQgetResult", pointer, pointer), ("PQclear", None, pointer),
            ("PQresultStatus", number, pointer), ("PQresultErrorField", text, pointer, number), ("PQresultErrorMessage", text, pointer),
            ("PQntuples", number, pointer), ("PQnfields", number, pointer), ("PQgetvalue", text, pointer, number, number),
            ("PQgetisnull", number, pointer, number, number)):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


PQ = library()


class Connection:
    def __init__(self, dsn):
        self.conn = PQ.PQconnectdb(dsn.encode())
        if PQ.PQstatus(self.conn) != 0:
            said = PQ.PQerrorMessage(self.conn).decode().strip()
            self.close()
            raise SqlError("08001", said)

    def close(self):
        if self.conn:
            PQ.PQfinish(self.conn)
            self.conn = None

    def run(self, sql):
        if not PQ.PQsendQuery(self.conn, sql.encode()):
            raise SqlError("08006", PQ.PQerrorMessage(self.conn).decode().strip())
        rows, error = [], None
        while result := self._result(sql):
            if PQ.PQresultStatus(result) in BAD:
                state = PQ.PQresultErrorField(result, STATE) or b"08006"
                error = SqlError(state.decode(), f"{PQ.PQresultErrorMessage(result).decode().strip()} of {sql}")
            else:
                rows = self._rows(result)
            PQ.PQclear(result)
        if error:
            raise error
        return rows

    def _result(self, sql):
        """The next one of this message; None: there is none any more."""
        while PQ.PQisBusy(self.conn):
            if not select.select([PQ.PQsocket(self.conn)], [], [], ANSWER_MAX)[0]:
                raise Hang(f"no answer within {ANSWER_MAX} s to {sql}")
            if not PQ.PQconsumeInput(self.conn):
                raise SqlError("08006", PQ.PQerrorMessage(self.conn).decode().strip())
        return PQ.PQgetResult(self.conn)

    @staticmethod
    def _rows(result):
        columns = range(PQ.PQnfields(result))
        return [tuple(None if PQ.PQgetisnull(result, row, column) else PQ.PQgetvalue(result, row, column).decode() for column in columns)
                for row in range(PQ.PQntuples(result))]

"""Realistic code in three languages, each with what may change in it and what may not."""

from __future__ import annotations

from dataclasses import dataclass

PYTHON = '''
def monthly_total(orders, month, tax=0.19):
    """Add up a month's orders."""
    total = 0
    for order in orders:
        if order["month"] == month and not order.get("cancelled"):
            total += order["net"] * (1 + tax)
    return round(total, 2)
'''

JAVASCRIPT = """
async function loadOrders(userId, limit = 20) {
  const url = `https://shop.example/api/users/${userId}/orders?limit=${limit}`;
  const response = await fetch(url, { headers: { accept: 'application/json' } });
  if (!response.ok) {
    throw new Error('loading failed: ' + response.status);
  }
  const orders = await response.json();
  return orders.filter(order => order.total > 0 && !order.cancelled);
}
"""

GO = """
func totalOf(orders []Order, month int) (float64, error) {
	total := 0.0
	for _, order := range orders {
		if order.Month == month && !order.Cancelled {
			total += order.Net * 1.19
		}
	}
	if total > 1000000 {
		return 0, errors.New("too much")
	}
	return total, nil
}
"""

SQL = """
SELECT customer_id, SUM(net) AS total
FROM orders
WHERE month IN (1, 2, 3) AND status <> 'cancelled'
GROUP BY customer_id
HAVING SUM(net) > 100
ORDER BY total DESC
"""

JAVA = """
public double totalOf(List<Order> orders, int month) {
    double total = 0;
    for (Order order : orders) {
        if (order.month == month && !order.cancelled) {
            total += order.net * 1.19;
        }
    }
    return total;
}
"""


@dataclass(frozen=True)
class Change:
    """One change to a snippet: what is replaced by what."""

    language: str
    code: str
    name: str
    edits: tuple[tuple[str, str], ...]

    @property
    def changed(self) -> str:
        """The snippet after the change, which must be one."""
        text = self.code
        for before, after in self.edits:
            assert before in text, f"{before!r} is not in the snippet"
            text = text.replace(before, after)
        assert text != self.code
        return text


def _changes(language: str, code: str, **edits: list[tuple[str, str]]) -> list[Change]:
    return [Change(language, code, name, tuple(pairs)) for name, pairs in edits.items()]


SAME = [
    *_changes(
        "python",
        PYTHON,
        names=[("orders", "rows"), ("order", "row"), ("monthly_total", "f"), ("tax", "rate")],
        literals=[("0.19", "None"), ('"month"', "'m'"), ("2)", "-10)"), ("= 0", "= ''")],
        comments=[('    """Add up a month\'s orders."""\n', ""), ("return", "# so\n    return")],
        formatting=[
            ("    ", "   "),
            ("month, ", "month,\n      "),
            ("(1 + tax)", "(\n          1\n          + tax\n      )"),
            ('if order["month"] == month and', 'if (order["month"] == month) and'),
            ("tax=0.19)", "tax = 0.19,)"),
        ],
        one_line=[
            ("\n            total += ", " total += "),
        ],
    ),
    *_changes(
        "javascript",
        JAVASCRIPT,
        names=[("userId", "u"), ("loadOrders", "g"), ("response", "r"), ("total", "sum")],
        literals=[("20", "true"), ("> 0", "> -5"), ("'loading failed: '", '"x"'), ("/api/", "/")],
        comments=[("const orders", "/* all\n of */\n  const orders"), (";\n  if", "; // ?\n  if")],
        formatting=[
            (";\n", "\n"),
            ("  ", "\t"),
            ("order =>", "(order) =>"),
            ("'application/json' }", "'application/json', }"),
        ],
        braces=[("{\n    throw", "throw"), ("status);\n  }", "status);")],
    ),
    *_changes(
        "go",
        GO,
        names=[("orders", "xs"), ("Order", "T"), ("month", "m"), ("Cancelled", "Gone")],
        literals=[("1000000", "1e9"), ('"too much"', "`big`"), ("1.19", "2"), ("0.0", "-1")],
        comments=[("\ttotal :=", "\t// the sum\n\ttotal :="), ("month int", "month /* , */ int")],
        formatting=[
            ("\treturn total", "\n\treturn total"),
            ("\t", "    "),
            ("order.Net * 1.19", "(order.Net*1.19)"),
        ],
    ),
    *_changes(
        "sql",
        SQL,
        names=[("customer_id", "c"), ("orders", "shop.sales"), ("net", "gross"), ("total", "t")],
        literals=[("1, 2, 3", "4, 5"), ("'cancelled'", "'open'"), ("100", "0.5")],
        comments=[("WHERE", "-- of one quarter\nWHERE"), ("SUM(net) AS", "SUM(net) /* x */ AS")],
        formatting=[("\n", " "), ("SELECT", "select"), ("GROUP BY", "group\n by"), ("IN (", "in(")],
    ),
    *_changes(
        "java",
        JAVA,
        names=[("orders", "xs"), ("Order", "Row"), ("double", "float"), ("cancelled", "gone")],
        literals=[("1.19", "2"), ("= 0", "= -1.0")],
        formatting=[
            (") {\n        if", ")\n{\n  if"),
            ("{\n            total", "total"),
            ("1.19;\n        }", "1.19;"),
            ("\n    ", "\n"),
        ],
    ),
]  # fmt: skip

OTHER = [
    *_changes(
        "python",
        PYTHON,
        operator=[("*", "/")],
        comparison=[("==", ">=")],
        negation=[("not ", "")],
        connective=[(" and ", " or ")],
        branch=[("    return", "    if total < 0:\n        return 0\n    return")],
        other_branch=[("(1 + tax)\n", "(1 + tax)\n        else:\n            continue\n")],
        loop=[("for order in", "while order in")],
        grouping=[("(1 + tax)", "1 + tax")],
        statement=[("    total = 0\n", "    total = 0\n    print(orders)\n")],
        indentation=[("    return", "        return")],
    ),
    *_changes(
        "javascript",
        JAVASCRIPT,
        operator=[("> 0", ">= 0")],
        connective=[("&&", "||")],
        negation=[("!response", "response")],
        branch=[("  const orders", "  if (limit) { return []; }\n  const orders")],
        no_wait=[("await response", "response")],
        declaration=[("const url", "let url")],
        optional=[("order.total", "order?.total")],
        part_of_template=[("?limit=${limit}", "")],
    ),
    *_changes(
        "go",
        GO,
        operator=[("*", "-")],
        connective=[("&&", "||")],
        branch=[("\treturn total", "\tif month > 12 {\n\t\treturn 0, nil\n\t}\n\treturn total")],
        assignment=[("total := 0.0", "total = 0.0")],
        pointer=[("[]Order", "[]*Order")],
        deferred=[("\ttotal :=", "\tdefer done()\n\ttotal :=")],
    ),
    *_changes(
        "sql",
        SQL,
        operator=[("<>", "=")],
        connective=[("AND", "OR")],
        negation=[("IN (", "NOT IN (")],
        join=[("FROM orders", "FROM orders JOIN customers ON orders.c = customers.id")],
        no_filter=[("HAVING SUM(net) > 100\n", "")],
        direction=[("DESC", "ASC")],
        distinct=[("SELECT", "SELECT DISTINCT")],
    ),
    *_changes(
        "java",
        JAVA,
        operator=[("+=", "-=")],
        negation=[("!order", "order")],
        branch=[("    return", "    if (total < 0) { return 0; }\n    return")],
        visibility=[("public ", "private ")],
    ),
]

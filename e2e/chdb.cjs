// Runs the statements of standard input in ClickHouse's engine, and prints the rows of each that is a query as JSON.
const { Session } = require("../bin/chdb/node_modules/chdb");

const session = new Session();
try {
  const statements = require("fs").readFileSync(0, "utf8").split(/;\s*$/m).filter((s) => s.trim());
  const results = [];
  for (const statement of statements) {
    const out = session.query(statement, "JSONEachRow");
    if (/^\s*(SELECT|WITH|FROM)\b/i.test(statement)) {
      results.push("[" + out.trim().split("\n").filter(Boolean).join(",") + "]");
    }
  }
  console.log("[" + results.join(",") + "]");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  session.close();
}

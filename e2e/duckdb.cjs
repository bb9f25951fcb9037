// Runs the statements of standard input in DuckDB, and prints the rows of each that is a query as JSON.
const { DuckDBInstance } = require("../bin/duckdb/node_modules/@duckdb/node-api");

async function main() {
  const statements = require("fs").readFileSync(0, "utf8").split(/;\s*$/m).filter((s) => s.trim());
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  const results = [];
  for (const statement of statements) {
    const reader = await connection.runAndReadAll(statement);
    if (/^\s*(SELECT|WITH|FROM)\b/i.test(statement)) {
      results.push(reader.getRowObjectsJson());
    }
  }
  console.log(JSON.stringify(results));
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});

// Runs the SQL of standard input in DuckDB, and prints the rows as JSON.
const { DuckDBInstance } = require("../bin/duckdb/node_modules/@duckdb/node-api");

async function main() {
  const sql = require("fs").readFileSync(0, "utf8");
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  const reader = await connection.runAndReadAll(sql);
  console.log(JSON.stringify(reader.getRowObjectsJson()));
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});

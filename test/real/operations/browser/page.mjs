// Looks at the live page at an address: what it says goes to stdout, a line each.
import {chromium} from "playwright-core";

const [browser, address] = process.argv.slice(2);
const session = await chromium.launch({executablePath: browser, args: ["--no-sandbox"]});
const page = await (await session.newContext({viewport: {width: 390, height: 844}})).newPage();
const faults = [];
page.on("pageerror", e => faults.push(e.message));
page.on("console", m => m.type() === "error" && faults.push(m.text()));
page.on("dialog", d => d.accept());

// until waits for what a function says in the page.
const until = (what, of) => page.waitForFunction(what, of, {timeout: 20_000, polling: 20});
const done = order => until(text => document.querySelector("#steps").lastChild?.textContent === text, order + " done");

await page.goto(address);
await until(() => document.querySelector("#summary").textContent.startsWith("2 of 2 ready"));
await until(() => parseFloat(document.querySelector("figure b").textContent) > 0); // calls per second
const asks = what => { console.log(what); return new Promise(resolve => process.stdin.once("data", resolve)); };
await asks("kill");
const began = Date.now();
await until(() => [...document.querySelectorAll("#workers tr")].some(row => row.cells[1].textContent !== "ready" || row.cells[6].textContent !== "0"));
console.log("seen after", Date.now() - began, "ms");
await until(() => document.querySelector("#summary").textContent.startsWith("2 of 2 ready"));
await page.fill("#count", "3");
await page.press("#count", "Enter");
await done("scale");
await until(() => document.querySelectorAll("#workers tr").length === 3);
await page.click("#workers tr:nth-child(2) button");
await done("drain");
await page.click("#restart");
await done("restart");
await page.click("#reload");
await done("reload");
await asks("upgrade");
await until(() => [...document.querySelectorAll("#events li")].some(e => e.textContent.includes("another process serves now")));
await until(() => document.querySelector("#summary").textContent.startsWith("2 of 2 ready") && document.querySelector("#trouble").textContent === "");
console.log("a thousand workers", await page.evaluate(async () => {
  const status = await (await ask("status")).json(), began = performance.now();
  status.workers = Array.from({length: 1000}, (_, i) => ({...status.workers[0], name: "worker-" + (i + 1)}));
  for (let round = 0; round < 3; round++) { workers(status); void document.body.offsetHeight; }
  return document.querySelectorAll("#workers tr").length === 1000 ? Math.round((performance.now() - began) / 3) : "are not shown";
}), "ms");
const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
console.log("events", await page.evaluate(() => document.querySelectorAll("#events li").length));
console.log("too wide by", Math.max(wide, 0));
console.log("faults", JSON.stringify(faults));
await session.close();
process.exit(0);

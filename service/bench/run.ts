import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Figure, isMet } from './figure.ts'

/**
 * `npm run bench` runs all benchmarks, `npm run bench -- rate qr` these. Each is the file of its name and a process of
 * its own. Every figure is a ratio to a named limit that is measured in the same run, in turns, by processor time, so
 * that it means the same on another machine. docs/benchmarks.md says what each one means.
 */
const benchmarks = [
  'rate',
  'order',
  'create',
  'qr',
  'start',
  'scanning',
  'networks',
  'life',
  'growth',
  'streams',
  'memory',
]

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !benchmarks.includes(name))
if (unknown.length > 0) {
  console.error(`no benchmark is called ${unknown.join(', ')}; choose from ${benchmarks.join(', ')}`)
  process.exit(2)
}

const figures: Figure[] = []
for (const name of asked.length > 0 ? asked : benchmarks) await runBenchmark(name)

const limited = figures.filter(({ limit }) => limit !== undefined)
const missed = limited.filter((figure) => !isMet(figure))
console.log(`\n${limited.length - missed.length} of ${limited.length} limits met`)
for (const { name } of missed) console.log(`missed: ${name}`)

function runBenchmark(name: string): Promise<void> {
  const child = fork(fileURLToPath(new URL(`${name}.ts`, import.meta.url)))
  child.on('message', (figure) => figures.push(figure as Figure))
  return new Promise((resolve, reject) => {
    child.once('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`the benchmark ${name} ended with ${code}`)),
    )
  })
}

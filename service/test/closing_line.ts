import type { Reporter, TestModule } from 'vitest/node'

/** Ends a run with one plain line, `N passed, N failed`, for whatever reads the log without knowing vitest. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 }
    for (const module of modules) {
      const before = counts.failed
      for (const test of module.children.allTests()) counts[test.result().state] += 1
      // A file that could not even be loaded has no test to fail.
      if (module.state() === 'failed' && counts.failed === before) counts.failed += 1
    }
    const skipped = counts.skipped === 0 ? '' : `, ${counts.skipped} skipped`
    console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`)
  }
}

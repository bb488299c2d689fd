/**
 * Mutation testing of the domain (docs/proof.md): Stryker changes one thing at a time in its source, and the domain's own
 * tests have to notice. Runs by `npm run mutation` only, because it takes the better part of an hour.
 */
export default {
  mutate: ['service/src/domain/**/*.ts', '!**/*.test.ts', '!**/testing/**'],
  testRunner: 'vitest',
  vitest: { configFile: 'vitest.mutation.config.ts' },
  plugins: ['@stryker-mutator/vitest-runner', './stryker.config.mjs'],
  ignorers: ['words'],
  // TypeScript 7 has no interface by which Stryker could rewrite it; Vite strips the types without it.
  tsconfigFile: 'none',
  // All tests of a mutant's neighbourhood, quickest first: to choose among 1,600 names costs more than to run them.
  coverageAnalysis: 'all',
  concurrency: 1,
  timeoutMS: 20_000,
  ignorePatterns: [
    '.cambist',
    '.ci',
    'devnet',
    'docs',
    'sdk',
    'service/bench',
    'service/test/{functional,proof,simulation}',
  ],
  // A second run tries only what changed since the first; `npm run mutation -- --force` tries everything again.
  incremental: true,
  incrementalFile: '.stryker/incremental.json',
  tempDirName: '.stryker/tmp',
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  jsonReporter: { fileName: '.stryker/mutation.json' },
  htmlReporter: { fileName: '.stryker/mutation.html' },
  clearTextReporter: { allowColor: false, logTests: false },
  thresholds: { high: 95, low: 90, break: 90 },
}

/** What an assertion or an error says is for people: whether it throws is behaviour, the sentence is not. */
const words = {
  shouldIgnore({ node, key, parentPath: parent }) {
    const isText = node.type === 'StringLiteral' || node.type === 'TemplateLiteral'
    if (!isText || parent === null) return undefined
    const isOfAssertion =
      parent.node.type === 'CallExpression' && parent.node.callee.name === 'assert' && key === 1
    const isOfError = parent.node.type === 'NewExpression' && parent.node.callee.name === 'Error'
    return isOfAssertion || isOfError ? 'the words of an assertion or an error' : undefined
  },
}

export const strykerPlugins = [{ kind: 'Ignore', name: 'words', value: words }]

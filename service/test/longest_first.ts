import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** A fresh checkout does not know yet which files take long, and the longest must not be left alone at the end. */
const LONGEST = [
  ...['sweeps', 'lifecycle_payouts', 'sandbox_command', 'lifecycle_reorgs', 'serve_roles', 'network_trouble'],
  ...['lifecycle_trouble', 'every_pair', 'sweeps_tron', 'sweep_crashes', 'documents', 'account', 'bitcoin'],
  ...[
    'simulation',
    'crash',
    'reorgs',
    'crash_controls',
    'faults',
    'webhooks',
    'reconciler',
    'canary_secrets',
  ],
]

export default class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}

function rank({ moduleId }: TestSpecification): number {
  const found = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
  return found < 0 ? LONGEST.length : found
}

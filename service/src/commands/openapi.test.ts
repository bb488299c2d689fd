import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { describeInterface } from './openapi.ts'

/**
 * What: the document that the published client is generated from is the one that the service serves.
 * How: `npm run openapi` writes both files; a route that changed without it fails here.
 */
test('sdk/openapi.json is what the service says of itself', async () => {
  const file = await readFile(new URL('../../../sdk/openapi.json', import.meta.url), 'utf8')
  expect(file, 'run: npm run openapi').toBe(`${await describeInterface()}\n`)
})

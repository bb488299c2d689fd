import { openApiDocument } from '../http/document.ts'

/** The document that the client in `sdk` is generated from (`npm run openapi`). */
export async function describeInterface(): Promise<string> {
  return JSON.stringify(await openApiDocument({ withSandbox: false }), null, 2)
}

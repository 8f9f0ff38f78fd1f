// site.mjs FOLDER NAME KIND…: gives NAME.js, NAME_bg.wasm and NAME.css in FOLDER, as many of them as are named, their hashed names,
// writes compressed copies beside them, and prints the lines of the file that tells the hashes.
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const [folder, name, ...kinds] = process.argv.slice(2);

/** Without what only people read: indentation, and comments that have lines of their own. */
function lean(kind, content) {
    if (kind === 'wasm') return content;
    const comments = /^[ \t]*\/\*[\s\S]*?\*\/[ \t]*\n/gm;
    return Buffer.from(content.toString('utf8').replace(comments, '').replace(/^[ \t]+/gm, ''));
}

for (const kind of kinds) {
    const from = kind === 'wasm' ? `${name}_bg.wasm` : `${name}.${kind}`;
    const content = lean(kind, readFileSync(`${folder}/${from}`));
    const digest = createHash('sha256').update(content).digest('hex').slice(0, 16);
    const to = `${folder}/${name}.${digest}.${kind}`;
    renameSync(`${folder}/${from}`, to);
    writeFileSync(to, content);
    writeFileSync(`${to}.gz`, gzipSync(content, { level: 9 }));
    const params = {
        [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    };
    const small = brotliCompressSync(content, { params });
    writeFileSync(`${to}.br`, small);
    console.log(`${kind}: ${digest}`);
    console.error(`   ${name}.${digest}.${kind}: ${content.length} bytes, ${small.length} with brotli`);
}

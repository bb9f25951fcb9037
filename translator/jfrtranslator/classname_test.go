// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
)

func TestGeneratedClassesHaveOneName(t *testing.T) {
	for raw, want := range map[string]string{
		// JDK 8.
		"shop/Cart$$Lambda$633/1724256292":                        "shop/Cart$$Lambda",
		"sun/reflect/GeneratedMethodAccessor12":                   "sun/reflect/GeneratedMethodAccessor",
		"sun/reflect/GeneratedConstructorAccessor3":               "sun/reflect/GeneratedConstructorAccessor",
		"sun/reflect/GeneratedSerializationConstructorAccessor45": "sun/reflect/GeneratedSerializationConstructorAccessor",
		"com/sun/proxy/$Proxy7":                                   "com/sun/proxy/$Proxy",
		"$Proxy7":                                                 "$Proxy",
		"java/lang/invoke/LambdaForm$MH/1307904972":               "java/lang/invoke/LambdaForm$MH",
		"java/lang/invoke/LambdaForm$DMH012":                      "java/lang/invoke/LambdaForm$DMH",
		// JDK 11.
		"shop/Cart$$Lambda$14/0x0000000800066840": "shop/Cart$$Lambda",
		// JDK 17, as JFR writes it, and its own classes.
		"shop.Cart$$Lambda$88+0x00007f8dac015000/363988129":            "shop.Cart$$Lambda",
		"java.lang.invoke.LambdaForm$MH+0x00007f8dac016400/2051853139": "java.lang.invoke.LambdaForm$MH",
		"jdk/proxy2/$Proxy26":                                                      "jdk/proxy/$Proxy",
		"com/sun/proxy/jdk/proxy1/$Proxy3":                                         "com/sun/proxy/jdk/proxy/$Proxy",
		"jdk/jfr/internal/handlers/EventHandler1386_1795547179827-26450":           "jdk/jfr/internal/handlers/EventHandler",
		"shop/Order$Secret/0x00000008011c0c00":                                     "shop/Order$Secret",
		"jdk/internal/math/FormattedFPDecimal.0x0000000800066c40/0000000123456789": "jdk/internal/math/FormattedFPDecimal",
		// JDK 21 and later.
		"shop.Cart$$Lambda/0x0000000063045210": "shop.Cart$$Lambda",
		// async-profiler and Datadog's library, which is based on it, also of Scala.
		"java/lang/management/ManagementFactory$$Lambda$93.0x00007f479400ed90": "java/lang/management/ManagementFactory$$Lambda",
		"kafka/log/LogValidator$$$Lambda$1377.0x000000080156f840":              "kafka/log/LogValidator$$$Lambda",
		// Libraries.
		"shop/Cart$$FastClassByCGLIB$$3f2a1b0c":                                 "shop/Cart$$FastClassByCGLIB",
		"shop/Cart$$EnhancerByCGLIB$$dead12_2":                                  "shop/Cart$$EnhancerByCGLIB",
		"shop/Cart$$EnhancerBySpringCGLIB$$1a2b$$FastClassBySpringCGLIB$$3c4d":  "shop/Cart$$EnhancerBySpringCGLIB$$FastClassBySpringCGLIB",
		"shop/Cart$$EnhancerBySpringCGLIB$$abc$$Lambda$1255/0x0000000800066840": "shop/Cart$$EnhancerBySpringCGLIB$$Lambda",
		"shop/Cart$$SpringCGLIB$$0":                                             "shop/Cart$$SpringCGLIB",
		"shop/Cart$$SpringCGLIB$$FastClass$$1":                                  "shop/Cart$$SpringCGLIB$$FastClass",
		"shop/Cart$$EnhancerByGuice$$1a2b3c":                                    "shop/Cart$$EnhancerByGuice",
		"shop/Order$HibernateProxy$8ZuJ3xYz":                                    "shop/Order$HibernateProxy",
		"shop/Order$MockitoMock$1234567":                                        "shop/Order$MockitoMock",
		"shop/Order$ByteBuddy$dQ2ad8b0$auxiliary$AbC":                           "shop/Order$ByteBuddy",
		"shop/Order_$$_jvst1a2_0":                                               "shop/Order_$$_jvst",
		"shop/Order_$$_javassist_12":                                            "shop/Order_$$_javassist",
		"script17955471798271234567890$_run_closure1":                           "script$_run_closure1",
	} {
		require.Equal(t, want, string(normalizeClass([]byte(raw))), raw)
	}
}

func TestRawNamesAreSystemNames(t *testing.T) {
	const raw = "shop/Cart$$Lambda$14.0x0000000800066840.run()V"
	for normalize, want := range map[bool]string{true: "shop.Cart$$Lambda.run", false: "shop.Cart$$Lambda$14.0x0000000800066840.run"} {
		c := jfrwriter.New()
		c.Method(1, "shop/Cart$$Lambda$14.0x0000000800066840", "run", "()V")
		c.StackTrace(1, jfrwriter.Frame{Method: 1})
		c.Class("jdk.ExecutionSample", jfrwriter.StartTime, jfrwriter.Sampled, jfrwriter.Stack, jfrwriter.State)
		c.Event("jdk.ExecutionSample", 1000, 1, 1, 1)
		pd, err := (&Unmarshaler{NormalizeClassNames: normalize}).UnmarshalProfiles(c.Bytes())
		require.NoError(t, err)
		text, f := pd.Dictionary().StringTable(), pd.Dictionary().FunctionTable().At(1)
		require.Equal(t, want, text.At(int(f.NameStrindex())))
		require.Equal(t, raw, text.At(int(f.SystemNameStrindex())))
	}
}

func TestOtherClassesKeepTheirNames(t *testing.T) {
	for _, name := range []string{
		"", "Main", "shop/MyLambdaFactory", "shop/ProxyServlet$Inner1", "shop/Cart$1", "shop/Cart$Lambda$1", "shop/Cart$Proxy12", "shop/Proxy12",
		"shop/MyProxy7", "shop/v2/Base64", "shop.v2.Base64", "shop/Http2", "shop/LambdaForm12", "shop/MyGeneratedMethodAccessor1", "shop/Hash$$abc",
		"shop/Cart$$anonfun$add$1", "shop/CGLIB$$Factory", "net/bytebuddy/ByteBuddy$Naming", "org/hibernate/proxy/HibernateProxy$Holder",
		"script12", "shop/Transcript1795547179827123", "jdk/internal/reflect/DirectMethodHandleAccessor", "shop/0xcafebabe$Inner", "0x12", "12",
		"app/core$fn__1234", "org/springframework/cglib/proxy/Enhancer$EnhancerKey",
	} {
		require.Equal(t, name, string(normalizeClass([]byte(name))))
	}
}
